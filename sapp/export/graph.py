"""From a JAX function of one batch of observations to an ONNX graph, primitive by primitive.

The function is traced, not run. Whatever does not depend on the observation (weights, fixed noise) is computed here and
stored; the rest becomes ONNX operators. So every policy that can be evaluated can be exported, whatever network it is,
as long as it uses the primitives below; anything else is refused by name, never approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from sapp.core.errors import SappError
from sapp.core.extras import require

BATCH = 7919
"""The traced batch size: a prime that no layer has, so that a dimension equal to it is the batch's."""
OPSET = 17
IR_VERSION = 9

_SIMPLE = {
    "add": "Add", "add_any": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "neg": "Neg",
    "exp": "Exp", "log": "Log", "tanh": "Tanh", "sqrt": "Sqrt", "abs": "Abs", "sign": "Sign", "floor": "Floor",
    "logistic": "Sigmoid", "erf": "Erf", "pow": "Pow", "sin": "Sin", "cos": "Cos", "lt": "Less", "le": "LessOrEqual",
    "gt": "Greater", "ge": "GreaterOrEqual", "eq": "Equal", "and": "And", "or": "Or", "not": "Not",
}  # fmt: skip
_REDUCE = {"reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}
_SAME = ("stop_gradient", "copy", "copy_p", "optimization_barrier")
_INLINE = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")


def build(function: Callable[[Any], Any], width: int | tuple[int, ...], output: str, metadata: dict[str, str]) -> bytes:
    """The ONNX model of ``function``: observations float32 [batch, width] → one array with the batch in front.

    Args:
        function: traceable by JAX.
        width: of an observation; or the shape of a stack of frames, which enters as uint8.
        output: name of the result.
        metadata: kept in the file.
    """
    onnx = _onnx()
    sizes, entering = ((width,), np.dtype(np.float32)) if isinstance(width, int) else (width, np.dtype(np.uint8))
    closed = jax.make_jaxpr(function)(jax.ShapeDtypeStruct((BATCH, *sizes), entering))
    graph = _Graph(onnx)
    graph.bind(closed.jaxpr.invars[0], "observation")
    for variable, value in zip(closed.jaxpr.constvars, closed.consts, strict=True):
        graph.constants[variable] = np.asarray(value)
    graph.run(closed.jaxpr)
    result = closed.jaxpr.outvars[0]
    kind = result.aval.dtype
    final = graph.node("Identity", [graph.name(result)], out=output)
    shape = ["batch", *(int(size) for size in result.aval.shape[1:])]
    if kind == np.int32:  # discrete actions leave as int64, which every runtime indexes with
        graph.nodes.pop()
        final = graph.node("Cast", [graph.name(result)], out=output, to=onnx.TensorProto.INT64)
        kind = np.dtype(np.int64)
    helper = onnx.helper
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "policy",
            [
                helper.make_tensor_value_info(
                    "observation", helper.np_dtype_to_tensor_dtype(entering), ["batch", *sizes]
                )
            ],
            [helper.make_tensor_value_info(final, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)],
            graph.initialisers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="sapp",
    )
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _onnx() -> Any:
    for part in ("helper", "numpy_helper"):
        require(f"onnx.{part}", "exporting to ONNX")
    return require("onnx", "exporting to ONNX")


class _Graph:
    """Nodes and stored arrays of a graph while it is made."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initialisers: list[Any] = []
        self.constants: dict[Any, np.ndarray] = {}
        self._names: dict[Any, str] = {}
        self._count = 0
        self._batch: str | None = None

    # --- names and constants ---------------------------------------------------------------------------------------

    def bind(self, variable: Any, name: str) -> None:
        self._names[variable] = name

    def fresh(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def node(self, operator: str, inputs: list[str], out: str | None = None, **attributes: Any) -> str:
        out = out or self.fresh()
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [out], **attributes))
        return out

    def store(self, value: Any) -> str:
        array = np.asarray(value)
        name = self.fresh()
        self.initialisers.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, values: list[int]) -> str:
        return self.store(np.asarray(values, np.int64))

    def constant(self, atom: Any) -> np.ndarray | None:
        if isinstance(atom, Literal):
            kind: Any = atom.aval
            return np.asarray(atom.val, kind.dtype)
        return self.constants.get(atom)

    def name(self, atom: Any) -> str:
        """What an atom is called in the graph; a constant is stored when first used."""
        if not isinstance(atom, Literal) and atom in self._names:
            return self._names[atom]
        value = self.constant(atom)
        assert value is not None
        name = self.store(value)
        if not isinstance(atom, Literal):
            self._names[atom] = name
        return name

    def batch(self) -> str:
        """The batch size at run time, int64 [1]."""
        if self._batch is None:
            shape = self.node("Shape", ["observation"])
            self._batch = self.node("Slice", [shape, self.integers([0]), self.integers([1])])
        return self._batch

    # --- equations -------------------------------------------------------------------------------------------------

    def run(self, jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            self.equation(equation)

    def equation(self, equation: Any) -> None:
        name, out = equation.primitive.name, equation.outvars[0]
        if name in _INLINE:
            self.inline(equation)
            return
        known = [self.constant(atom) for atom in equation.invars]
        batched = any(_is_batch(size) for variable in equation.outvars for size in variable.aval.shape)
        if all(value is not None for value in known) and not batched:
            found = equation.primitive.bind(*known, **equation.params)
            values = found if equation.primitive.multiple_results else [found]
            for variable, value in zip(equation.outvars, values, strict=True):
                # keys stay what they are; everything else becomes plain numbers
                self.constants[variable] = (
                    value if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key) else (np.asarray(value))
                )
            return
        method = getattr(self, f"_{name}", None)
        if name in _SAME:
            for variable, atom in zip(equation.outvars, equation.invars, strict=True):
                self.bind(variable, self.name(atom))
        elif name in _SIMPLE:
            self.bind(out, self.node(_SIMPLE[name], [self.name(atom) for atom in equation.invars]))
        elif name in _REDUCE:
            self.bind(out, self.reduce(_REDUCE[name], equation))
        elif method is not None:
            self.bind(out, method(equation))
        else:
            raise SappError(f"the policy uses the operation {name!r}, which cannot be exported to ONNX yet")

    def inline(self, equation: Any) -> None:
        inner = next(equation.params[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in equation.params)
        jaxpr = getattr(inner, "jaxpr", inner)
        for variable, value in zip(jaxpr.constvars, getattr(inner, "consts", ()), strict=False):
            self.constants[variable] = np.asarray(value)
        for variable, atom in zip(jaxpr.invars, equation.invars, strict=True):
            value = self.constant(atom)
            # the same inner program may be called twice with other arguments: forget what it held before
            self.constants.pop(variable, None)
            self._names.pop(variable, None)
            if value is not None:
                self.constants[variable] = value
            else:
                self.bind(variable, self.name(atom))
        for each in jaxpr.eqns:
            for variable in each.outvars:
                self.constants.pop(variable, None)
                self._names.pop(variable, None)
        self.run(jaxpr)
        for variable, atom in zip(equation.outvars, jaxpr.outvars, strict=True):
            value = self.constant(atom)
            if value is not None:
                self.constants[variable] = value
            else:
                self.bind(variable, self.name(atom))

    def reduce(self, operator: str, equation: Any) -> str:
        axes = list(equation.params["axes"])
        inputs = [self.name(equation.invars[0])]
        if operator == "ReduceSum":  # takes its axes as an input since opset 13, the others since 18
            return self.node(operator, [*inputs, self.integers(axes)], keepdims=0)
        return self.node(operator, inputs, axes=axes, keepdims=0)

    # --- primitives with parameters --------------------------------------------------------------------------------

    def _integer_pow(self, equation: Any) -> str:
        power = np.asarray(equation.params["y"], equation.invars[0].aval.dtype)
        return self.node("Pow", [self.name(equation.invars[0]), self.store(power)])

    def _square(self, equation: Any) -> str:
        name = self.name(equation.invars[0])
        return self.node("Mul", [name, name])

    def _rsqrt(self, equation: Any) -> str:
        return self.node("Reciprocal", [self.node("Sqrt", [self.name(equation.invars[0])])])

    def _log1p(self, equation: Any) -> str:
        one = self.store(np.ones((), equation.invars[0].aval.dtype))
        return self.node("Log", [self.node("Add", [self.name(equation.invars[0]), one])])

    def _clamp(self, equation: Any) -> str:
        low, value, high = (self.name(atom) for atom in equation.invars)
        return self.node("Min", [self.node("Max", [value, low]), high])

    def _select_n(self, equation: Any) -> str:
        which, no, yes = equation.invars
        if which.aval.dtype != bool:
            raise SappError("the policy selects by a number, which cannot be exported to ONNX yet")
        return self.node("Where", [self.name(which), self.name(yes), self.name(no)])

    def _convert_element_type(self, equation: Any) -> str:
        wanted = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(equation.params["new_dtype"]))
        return self.node("Cast", [self.name(equation.invars[0])], to=wanted)

    def _dot_general(self, equation: Any) -> str:
        (left, right), (left_batch, right_batch) = equation.params["dimension_numbers"]
        one, two = equation.invars
        names = [self.name(one), self.name(two)]
        plain = not left_batch and not right_batch and two.aval.ndim == 2 and tuple(right) == (0,)
        if plain and tuple(left) == (one.aval.ndim - 1,):
            return self.node("MatMul", names)
        letters = iter("abcdefghijklmnopqrstuvwxyz")
        first = [next(letters) for _ in range(one.aval.ndim)]
        second = [next(letters) for _ in range(two.aval.ndim)]
        for i, j in [*zip(left, right, strict=True), *zip(left_batch, right_batch, strict=True)]:
            second[j] = first[i]
        kept = [first[i] for i in left_batch]
        kept += [x for i, x in enumerate(first) if i not in left and i not in left_batch]
        kept += [x for j, x in enumerate(second) if j not in right and j not in right_batch]
        return self.node("Einsum", names, equation=f"{''.join(first)},{''.join(second)}->{''.join(kept)}")

    def _reshape(self, equation: Any) -> str:
        return self.reshape(self.name(equation.invars[0]), equation.outvars[0].aval.shape)

    def reshape(self, name: str, shape: Any) -> str:
        sizes = [-1 if _is_batch(size) else int(size) for size in shape]
        if sizes.count(-1) > 1:
            raise SappError("the policy mixes its batch into two dimensions, which cannot be exported to ONNX")
        return self.node("Reshape", [name, self.integers(sizes)])

    _squeeze = _reshape
    _expand_dims = _reshape

    def _broadcast_in_dim(self, equation: Any) -> str:
        operand, shape = equation.invars[0], equation.params["shape"]
        places = equation.params["broadcast_dimensions"]
        before = [1] * len(shape)
        for place, size in zip(places, operand.aval.shape, strict=True):
            before[place] = size
        name = self.reshape(self.name(operand), before) if before else self.name(operand)
        if tuple(before) == tuple(shape):
            return name
        parts = []
        for size, had in zip(shape, before, strict=True):
            if _is_batch(size):
                # 1 keeps the operand's own batch; without one, the batch's size is looked up at run time
                parts.append(self.integers([1]) if _is_batch(had) else self.batch())
            else:
                parts.append(self.integers([int(size)]))
        return self.node("Expand", [name, parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)])

    def _transpose(self, equation: Any) -> str:
        return self.node("Transpose", [self.name(equation.invars[0])], perm=list(equation.params["permutation"]))

    def _concatenate(self, equation: Any) -> str:
        return self.node("Concat", [self.name(a) for a in equation.invars], axis=equation.params["dimension"])

    def _slice(self, equation: Any) -> str:
        operand, params = equation.invars[0], equation.params
        axes = list(range(operand.aval.ndim))
        ends = [2**31 - 1 if _is_batch(end) else int(end) for end in params["limit_indices"]]
        steps = list(params["strides"] or [1] * len(axes))
        inputs = [list(params["start_indices"]), ends, axes, steps]
        return self.node("Slice", [self.name(operand), *(self.integers(each) for each in inputs)])

    def _argmax(self, equation: Any) -> str:
        (axis,) = equation.params["axes"]
        found = self.node("ArgMax", [self.name(equation.invars[0])], axis=axis, keepdims=0, select_last_index=0)
        wanted = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(equation.params["index_dtype"]))
        return self.node("Cast", [found], to=wanted)

    def _gather(self, equation: Any) -> str:
        """Only what ``take_along_axis`` makes: one element along one axis for each row of the batch."""
        operand, index = equation.invars
        numbers = equation.params["dimension_numbers"]
        out = equation.outvars[0].aval.shape
        axes = tuple(numbers.start_index_map)
        batched = tuple(numbers.operand_batching_dims)
        sizes = equation.params["slice_sizes"]
        rest = [i for i in range(operand.aval.ndim) if i not in axes and i not in batched]
        whole = all(sizes[i] == operand.aval.shape[i] for i in rest)
        if len(axes) != 1 or batched != (0,) or sizes[axes[0]] != 1 or not whole or index.aval.shape[-1] != 1:
            raise SappError("the policy picks elements in a way that cannot be exported to ONNX yet")
        axis = axes[0]
        places = [1] * operand.aval.ndim
        places[0] = BATCH
        where = self.reshape(self.node("Cast", [self.name(index)], to=self.onnx.TensorProto.INT64), places)
        target = [1 if i in (0, axis) else int(size) for i, size in enumerate(operand.aval.shape)]
        where = self.node("Expand", [where, self.integers(target)])
        return self.reshape(self.node("GatherElements", [self.name(operand), where], axis=axis), out)


def _is_batch(size: int) -> bool:
    return bool(size) and size % BATCH == 0


def is_ours(content: bytes) -> bool:
    """Whether a file's beginning is that of a graph made here: protobuf's second field is the producer's name."""
    return b"\x12\x04sapp" in content[:16]
