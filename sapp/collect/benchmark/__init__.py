"""The paper's eighteen datasets, made on this machine: names, recipes, shipped policies, generation, checks."""
