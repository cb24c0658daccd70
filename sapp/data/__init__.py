"""Logged data: one ``Dataset`` type, and loaders for D4RL HDF5, Minari, Parquet, CSV and NumPy files."""

from sapp.data.arrays import save_npz
from sapp.data.dataset import Dataset, concatenate
from sapp.data.load import load
from sapp.data.tables import Columns

__all__ = ["Columns", "Dataset", "concatenate", "load", "save_npz"]
