"""Functions that loops inline: compiled to LLVM's intermediate code, and no further.

Numba optimises every function that another one calls, and makes machine code for it, before it is
linked into its caller, where it is optimised again. A function at depth d of a loop is then
optimised d times, and its own machine code is never run if it is always inlined. Here a function
that is inlined is typed and lowered only; the loop that it ends up in is optimised once. For the
loops of a matrix factorization that is 15 s of one core where it was 38 s, with the same bits.

Called from Python, such a function is compiled as a loop of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class InlinedLibrary(JITCodeLibrary):
    """Intermediate code for other libraries to link: not optimised, and without machine code."""

    def finalize(self) -> None:
        """Link the functions that this one calls."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(library, "_reload_init"):  # not in Numba 0.60
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class InlinedCompiler(Compiler):
    """Numba's compiler, without wrappers for calls from Python and without machine code."""

    def define_pipelines(self) -> Any:
        state = self.state
        for flag in ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"):
            setattr(state.flags, flag, True)
        state.library = InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class Inlined(CPUDispatcher):
    """A function that is compiled into those that call it.

    Parameters
    ----------
    function, locals, options
        The function, and Numba's options, among them `forceinline`.
    alone
        Compiles the function for calls from Python.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        locals: dict[str, Any],
        options: dict[str, Any],
        alone: Callable[[Callable[..., Any]], Any],
    ) -> None:
        super().__init__(function, locals, options, InlinedCompiler)
        self._alone = alone

    @cached_property
    def alone(self) -> Any:
        """The function for calls from Python."""
        return self._alone(self.py_func)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.alone(*arguments, **named)

    def add_overload(self, cres: Any) -> None:
        """Let loops find a signature, by a key that is not the function of machine code."""
        cres = cres._replace(entry_point=object())
        self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres
