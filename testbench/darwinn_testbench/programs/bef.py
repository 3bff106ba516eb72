"""TFRT programs, in the binary executable format and in its text form: read, shown, executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TextIO

from darwinn_formats import tfrt
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, name_of
from darwinn_formats.signatures import is_bef
from darwinn_reference.errors import Unsupported
from darwinn_reference.protocol import Reference
from darwinn_reference.tfrt import (
    SINGLE,
    Driver,
    Options,
    ReportedError,
    TfrtReference,
    complaints,
    expected_errors,
    parts_of,
    queue_of,
)

from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.handler import REGION, FunctionFigures, Handler, MlirForm, Opening
from darwinn_testbench.request.inputs import head_of


def _functions(file: tfrt.BefFile) -> Iterator[FunctionFigures]:
    for function in file.functions:
        native = function.body is None
        count = 0 if function.body is None else len(function.body.kernels)
        name = function.name or REGION
        yield FunctionFigures(name, function.argument_types, function.result_types, count, native)


def _open(source: Source, opening: Opening) -> Reference:
    return _open_functions(tfrt.load(source), opening)


def _open_functions(file: tfrt.BefFile, opening: Opening) -> Reference:
    options = _options(file, opening)
    try:
        return TfrtReference(
            file,
            natives=opening.natives,
            output=opening.output,
            workers=options.threads,
            init_function=options.init_function,
            print_error_code=options.print_error_code,
        )
    except Unsupported as error:
        if "native" in error.what:
            error.args = (f"{error} (--natives MODULE gives them)",)
        raise


def _options(file: tfrt.BefFile, opening: Opening) -> Options:
    """What the command line says of the host, checked.

    Raises:
        InputError: no such work queue or function.
    """
    said = opening.host
    try:
        threads, blocking_threads = queue_of(said.work_queue or SINGLE)
    except ValueError as error:
        raise InputError(f"--work-queue {said.work_queue}: {error}") from error
    if said.init_function is not None:
        function = file.function(said.init_function)
        if function is None or function.argument_types or function.body is None:
            reason = "there is no such function without arguments"
            raise InputError(f"{file.file}: --init-function {said.init_function}: {reason}")
    return Options(
        init_function=said.init_function,
        print_error_code=said.error_codes,
        threads=threads,
        blocking_threads=blocking_threads,
    )


def _load_text(source: Source) -> tfrt.BefFile:
    name, text = _text_of(source)
    return _converted(text, name)


def _converted(text: str, name: str) -> tfrt.BefFile:
    """The file that a text is converted to, where each kernel has a location of its own."""
    return replace(tfrt.load(tfrt.dump(tfrt.from_text(text, name))), file=name)


def _text_of(source: Source) -> tuple[str, str]:
    """Name and text of a file."""
    data = content_of(source)
    try:
        return name_of(source), data.decode()
    except UnicodeDecodeError as error:
        reason = "is not UTF-8"
        raise FormatError("text", reason, offset=error.start, file=name_of(source)) from None


def _run_suite(source: Source, opening: Opening, log: TextIO) -> int:
    if is_bef(head_of(source)):
        return _run_driver(tfrt.load(source), None, opening, log)
    name, text = _text_of(source)
    return max(_run_part(name, part, opening, log) for part in parts_of(text))


def _run_part(name: str, text: str, opening: Opening, log: TextIO) -> int:
    """Run a part of a text; or judge the errors of its conversion, where it expects any."""
    errors = tfrt.diagnose(text, name)
    if not errors:
        return _run_driver(_converted(text, name), text, opening, log)
    expected = expected_errors(text)
    if not expected:
        raise errors[0]
    reported = [ReportedError(e.line, e.reason, f"{name}:{e.line}:{e.column}") for e in errors]
    found = complaints(reported, expected)
    log.writelines(f"{complaint}\n" for complaint in found)
    return int(bool(found))


def _run_driver(file: tfrt.BefFile, text: str | None, opening: Opening, log: TextIO) -> int:
    driver = Driver(
        file,
        text,
        _options(file, opening),
        output=opening.output,
        log=log,
        natives=dict(opening.natives or {}),
    )
    return driver.run()


def _is_test(source: Source) -> bool:
    """Whether a text consists of parts, or says which errors it expects."""
    _, text = _text_of(source)
    return len(parts_of(text)) > 1 or bool(expected_errors(text))


def _open_text(source: Source, opening: Opening) -> Reference:
    return _open_functions(_load_text(source), opening)


def _mlir(file: tfrt.BefFile, form: MlirForm) -> str:
    return tfrt.to_text(
        file,
        locations=form is MlirForm.LOCATIONS,
        generic=form is MlirForm.GENERIC,
        exact=form is MlirForm.EXACT,
    )


HANDLER = Handler(
    tfrt.load,
    tfrt.describe,
    tfrt.disassemble,
    _functions,
    _open,
    mlir=_mlir,
    suite=_run_suite,
    has_host=True,
)

TEXT_HANDLER = replace(HANDLER, load=_load_text, open=_open_text, only_suite=_is_test)
