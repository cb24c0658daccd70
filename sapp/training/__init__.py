"""Training: one member's step, populations as one compiled program, the loop on the host."""
