"""Logged data: ``Dataset`` for vectors, ``FrameDataset`` for images, and loaders for the files that hold them."""

from sapp.data.columns import Columns
from sapp.data.dataset import Dataset, concatenate
from sapp.data.frames import FrameDataset
from sapp.data.ledger import Ledger
from sapp.data.load import load, load_vectors
from sapp.data.loaders.arrays import save_npz

__all__ = ["Columns", "Dataset", "FrameDataset", "Ledger", "concatenate", "load", "load_vectors", "save_npz"]
