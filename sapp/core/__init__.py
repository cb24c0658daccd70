"""What every other package stands on: errors, files, batches, pytrees, statistics."""
