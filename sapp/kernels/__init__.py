"""Kernels written by hand where the compiler's program is limited by memory traffic; each has a plain counterpart."""
