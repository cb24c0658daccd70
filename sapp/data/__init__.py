"""Logged data: ``Dataset`` for vectors, ``FrameDataset`` for images, and loaders for the files that hold them."""

from sapp.data.dataset import Dataset, concatenate
from sapp.data.frames import FrameDataset
from sapp.data.load import load, load_vectors
from sapp.data.loaders.arrays import save_npz
from sapp.data.loaders.parquet_csv import Columns

__all__ = ["Columns", "Dataset", "FrameDataset", "concatenate", "load", "load_vectors", "save_npz"]
