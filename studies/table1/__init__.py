"""Table 1 of the paper, for real: eighteen datasets, a million steps, three seeds, with the control that decides."""
