"""Policies as ONNX files with everything they need inside, checked against ours, and a card that says what they are."""

from sapp.export.policy import export_policy

__all__ = ["export_policy"]
