"""Damaged files for readers: seeded changes to bytes, text, archives, arrays, JSON and Parquet."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from svmp.recommend.files import folder_of
from tests.ratings.tools import FORMS, Plain, netflix, random_table

Rng = np.random.Generator
ODD_BYTES = [b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\xff" * 8, b"\x00" * 16, b"\x80", b"\x01"]
ODD_TEXT = [
    "\n", "\r\n\r\n", ",", ",,", "::", '"', ":", "7:\n", "nan", "inf", "-1", "1e308", "1e39", "-",
    "9223372036854775807", "9223372036854775808", "99999999999999999999999", "\x00", "\ufeff", "é",
    " ", "\t", "0007", "1.5", "2005-02-30", "x" * 2000, "userId,movieId,rating\n", "'", ";", "\x1a",
]  # fmt: skip
ODD_NUMBERS = [
    0.0, -0.0, -1.0, 1.0, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 1e-38, 1e19, 1e12, 2.0**31,
    2.0**63, 1e300, -5.0, 0.5,
]  # fmt: skip
ODD_JSON: list[Any] = [
    None, True, False, 0, -1, 1, 3, 7, 2**31, 2**63, 10**30, 1.5, -0.5, 1e300, 1e-300, float("inf"),
    float("-inf"), float("nan"), "", "x", "nan", "z", "full", "diagonal", "user", "shared", [], {},
    [1, 2], [5, 1], [None], {"a": 1}, "é" * 50, [[[]]], "RatingModel", "EventModel", [0],
    [1e308, 1e308],
]  # fmt: skip


def one_of(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


# --- bytes and text ------------------------------------------------------------------------------


def change_bytes(raw: bytes, rng: Rng) -> bytes:
    """Flip, cut, repeat, move or overwrite bytes, up to five times; often near the end."""
    data = bytearray(raw)
    for _ in range(int(rng.integers(1, 6))):
        size = len(data)
        if not size:
            break
        near_end = rng.random() < 0.4
        at = int(rng.integers(max(0, size - 600) if near_end else 0, size))
        length = int(rng.integers(1, 1 + min(size, 64)))
        match int(rng.integers(8)):
            case 0 | 1:
                data[at] ^= 1 << int(rng.integers(8))
            case 2:
                data[at] = int(rng.integers(256))
            case 3:
                del data[at : at + length]
            case 4:
                data[at:at] = data[at : at + length]
            case 5:
                odd = one_of(rng, ODD_BYTES)
                data[at : at + len(odd)] = odd
            case 6:
                data[at : at + length] = rng.bytes(length)
            case _:
                if rng.random() < 0.3:
                    del data[at:]
                else:
                    data[at] = (data[at] + int(rng.choice([-1, 1]))) % 256
    return bytes(data)


def change_text(text: str, rng: Rng) -> str:
    """Put odd words in, repeat or drop lines, change fields."""
    for _ in range(int(rng.integers(1, 5))):
        lines = text.split("\n")
        row = int(rng.integers(len(lines)))
        match int(rng.integers(6)):
            case 0:
                at = int(rng.integers(len(text) + 1))
                text = text[:at] + one_of(rng, ODD_TEXT) + text[at:]
            case 1:
                text = "\n".join([*lines[:row], one_of(rng, ODD_TEXT), *lines[row:]])
            case 2:
                text = "\n".join([*lines[: row + 1], *lines[row:]])
            case 3:
                text = "\n".join([*lines[:row], *lines[row + 1 :]])
            case 4:
                fields = lines[row].split(",")
                fields[int(rng.integers(len(fields)))] = one_of(rng, ODD_TEXT)
                text = "\n".join([*lines[:row], ",".join(fields), *lines[row + 1 :]])
            case _:
                at = int(rng.integers(len(text) + 1))
                text = text[:at] + text[at + int(rng.integers(1, 10)) :]
    return text


def either(change: Callable[[Rng], bytes], raw: bytes) -> Callable[[Rng], bytes]:
    """Change what is in a file, or the bytes of the file."""

    def make(rng: Rng) -> bytes:
        return change(rng) if rng.random() < 0.6 else change_bytes(raw, rng)

    return make


# --- files of ratings ----------------------------------------------------------------------------


def of_text(text: str) -> Callable[[Rng], bytes]:
    def change(rng: Rng) -> bytes:
        return change_text(text, rng).encode("utf-8", "surrogatepass")

    return either(change, text.encode())


def of_gzip(text: str) -> Callable[[Rng], bytes]:
    def change(rng: Rng) -> bytes:
        inner = change_text(text, rng).encode()
        return gzip.compress(inner, mtime=0) * int(rng.integers(1, 3))

    return either(change, gzip.compress(text.encode(), mtime=0))


def zipped(files: dict[str, bytes], locked: bool = False) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
    raw = found.getvalue()
    if locked:  # the flag of each file, in front of it and in the directory
        raw = raw.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01")
        raw = raw.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
    return raw


def of_zip(name: str, text: str) -> Callable[[Rng], bytes]:
    def change(rng: Rng) -> bytes:
        inner = change_text(text, rng).encode()
        others = {"readme.txt": b"x"} if rng.random() < 0.5 else {}
        return zipped({name: inner, **others}, locked=rng.random() < 0.05)

    return either(change, zipped({name: text.encode()}))


def npy(header: str, body: bytes) -> bytes:
    line = header.encode("latin-1", "replace")
    line += b" " * (-(len(line) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + body


def of_npz(arrays: dict[str, Any]) -> Callable[[Rng], bytes]:
    """Change headers and items of arrays, so that the sums of the archive are right."""
    kinds = [
        "<i8",
        "<i4",
        "<u8",
        "<f8",
        "<f4",
        ">i8",
        "|b1",
        "|O",
        "<U3",
        "<U0",
        "|S4",
        "|V8",
        "<M8[s]",
    ]
    shapes = [
        "(1000000000000,)",
        "(-1,)",
        "()",
        "(200, 1)",
        "(0,)",
        "(10, 20)",
        "(199,)",
        "(2**70,)",
    ]

    def change(rng: Rng) -> bytes:
        files = {}
        chosen = one_of(rng, list(arrays))
        for name, array in arrays.items():
            values = np.array(array)
            kind, shape = values.dtype.str, str(values.shape)
            body = values.tobytes()
            if name == chosen:
                match int(rng.integers(5)):
                    case 0:
                        kind = one_of(rng, kinds)
                    case 1:
                        shape = one_of(rng, shapes)
                    case 2:
                        body = change_bytes(body, rng)
                    case 3 if values.dtype.kind != "U":
                        values.flat[int(rng.integers(values.size))] = one_of(
                            rng, [0, -1, 2**31 - 1]
                        )
                        body = values.tobytes()
                    case _:
                        name = one_of(rng, ["user", "rating", "x", "user_ids", ""])
            header = f"{{'descr': '{kind}', 'fortran_order': {one_of(rng, [False, True])}, "
            header += f"'shape': {shape}, }}"
            if rng.random() < 0.1:
                header = change_text(header, rng)
            files[f"{name}.npy"] = npy(header[:60000], body)
        return zipped(files, locked=rng.random() < 0.05)

    whole = io.BytesIO()
    np.savez(whole, **arrays)
    return either(change, whole.getvalue())


def as_parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    found = io.BytesIO()
    frame.write_parquet(found, **options)
    return found.getvalue()


def deltas(frame: pl.DataFrame) -> dict[str, str]:
    """Return how columns are written as differences."""
    kinds = {pl.Int64: "DELTA_BINARY_PACKED", pl.String: "DELTA_BYTE_ARRAY"}
    return {name: kinds.get(kind, "PLAIN") for name, kind in frame.schema.items()}  # type: ignore[call-overload]


def of_parquet(frame: pl.DataFrame) -> Callable[[Rng], bytes]:
    kinds: list[Any] = ["zstd", "snappy", "uncompressed", "gzip", "lz4", "brotli"]
    files = [as_parquet(frame, compression=kind, row_group_size=120) for kind in kinds]
    files.append(as_parquet(frame, statistics="full", data_page_size=200))
    for options in (
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "column_encoding": deltas(frame), "compression": "none"},
        {"use_dictionary": False, "data_page_size": 100, "row_group_size": 70},
    ):
        found = io.BytesIO()
        pq.write_table(frame.to_arrow(compat_level=pl.CompatLevel.oldest()), found, **options)
        files.append(found.getvalue())
    types = [
        pl.String,
        pl.Float64,
        pl.UInt64,
        pl.Int8,
        pl.Binary,
        pl.Boolean,
        pl.Date,
        pl.Categorical,
    ]

    def change(rng: Rng) -> bytes:
        name = one_of(rng, frame.columns)
        match int(rng.integers(4)):
            case 0:
                other = frame.with_columns(pl.col(name).cast(one_of(rng, types), strict=False))
            case 1:
                value = one_of(rng, [None, *ODD_NUMBERS])
                row = int(rng.integers(frame.height))
                here = pl.int_range(pl.len()) == row
                other = frame.with_columns(
                    pl.when(here).then(value).otherwise(pl.col(name)).alias(name)
                )
            case 2:
                other = frame.with_columns(pl.concat_list(name).alias(name))
            case _:
                other = frame.rename({name: one_of(rng, ["x", "user", "rating", ""])}, strict=False)
        return as_parquet(other)

    def make(rng: Rng) -> bytes:
        if rng.random() < 0.15:
            try:
                return change(rng)
            except pl.exceptions.PolarsError:  # two columns of one name
                pass
        return change_bytes(one_of(rng, files), rng)

    return make


def makers(folder: Path) -> dict[str, tuple[str, Callable[[Rng], bytes]]]:
    """Return by form the name of a file, and what makes a damaged one."""
    table, words = random_table(1), random_table(2, words=True)
    movies = sorted(set(table.item))
    prize = netflix(table, movies)
    users, user = np.unique(table.user, return_inverse=True)
    items, item = np.unique(words.item, return_inverse=True)
    keys = {"user": user, "item": item, "user_ids": users, "item_ids": items}
    plain = {"user": table.user, "item": table.item, "rating": table.rating, "time": table.time}

    def text(form: str, of: Plain = table) -> str:
        return Path(FORMS[form](of, folder)).read_text()

    return {
        "csv": ("ratings.csv", of_text(text("csv"))),
        "words": ("ratings.csv", of_text(text("quoted", words))),
        "tsv": ("u.data", of_text(text("tsv"))),
        "semicolons": ("ratings.csv", of_text(text("semicolons"))),
        "movielens": ("ratings.dat", of_text(text("movielens"))),
        "prize": ("combined_data_1.txt", of_text(prize)),
        "gzip": ("ratings.csv.gz", of_gzip(text("csv"))),
        "prize, gzipped": ("mv_1.txt.gz", of_gzip(prize)),
        "zip": ("a.zip", of_zip("ml/ratings.csv", text("csv"))),
        "prize, zipped": ("a.zip", of_zip("mv_1.txt", prize)),
        "npz": ("ratings.npz", of_npz(plain)),
        "npz of keys": ("ratings.npz", of_npz({**keys, "rating": np.float32(table.rating)})),
        "parquet": ("ratings.parquet", of_parquet(table.frame())),
        "parquet of words": ("ratings.parquet", of_parquet(words.frame())),
    }


# --- folders of models ---------------------------------------------------------------------------


def change_json(value: Any, rng: Rng) -> Any:
    """Replace, drop or add a value somewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = one_of(rng, list(value))
        match int(rng.integers(6)):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, one_of(rng, ["x", "format", "kind", ""]): one_of(rng, ODD_JSON)}
            case _:
                return {**value, key: change_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = int(rng.integers(len(value)))
        return [*value[:at], change_json(value[at], rng), *value[at + 1 :]]
    return one_of(rng, ODD_JSON)


def change_arrays(raw: bytes, rng: Rng) -> bytes:
    """Change the header of a safetensors file, or numbers in one of its arrays."""
    length = int.from_bytes(raw[:8], "little")
    header, body = json.loads(raw[8 : 8 + length]), bytearray(raw[8 + length :])
    if rng.random() < 0.4:
        changed = json.dumps(change_json(header, rng)).encode()
        changed += b" " * (-len(changed) % 8)
        return len(changed).to_bytes(8, "little") + changed + bytes(body)
    kinds = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
    entry = header[one_of(rng, [name for name in header if name != "__metadata__"])]
    first, last = entry["data_offsets"]
    values = np.frombuffer(bytes(body[first:last]), kinds[entry["dtype"]]).copy()
    if values.size:
        count = int(one_of(rng, [1, 1, 3, values.size]))
        with np.errstate(all="ignore"):
            values[rng.integers(0, values.size, count)] = np.float64(
                one_of(rng, ODD_NUMBERS)
            ).astype(values.dtype)
    body[first:last] = values.tobytes()
    return raw[: 8 + length] + bytes(body)


def change_ids(path: Path, rng: Rng) -> None:
    """Write other ids."""
    ids = pl.read_parquet(path)
    match int(rng.integers(8)):
        case 0:
            ids = ids.with_columns(
                pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise("id").alias("id")
            )
        case 1:
            ids = pl.concat([ids.head(ids.height - 1), ids.head(1)])
        case 2:
            ids = ids.head(int(rng.integers(ids.height)))
        case 3:
            ids = ids.cast(one_of(rng, [pl.String, pl.Float64, pl.Int32, pl.Binary]), strict=False)
        case 4:
            ids = pl.DataFrame({"id": ["x" * 100_000, *map(str, range(ids.height - 1))]})
        case 5:
            ids = pl.DataFrame(
                {"id": [f"{n}\0" if n % 2 else str(n - 1) for n in range(ids.height)]}
            )
        case 6:
            ids = ids.rename({"id": "ids"})
        case _:
            ids = pl.DataFrame({"id": [[1]] * ids.height})
    ids.write_parquet(path)


def change_model(folder: Path, rng: Rng) -> None:
    """Damage one file of a model's folder."""
    inside = folder_of(folder)
    match int(rng.integers(10)):
        case 0 | 1 | 2:
            path = folder / "model.json"
            path.write_text(json.dumps(change_json(json.loads(path.read_text()), rng)))
        case 3 | 4 | 5:
            path = inside / "arrays.safetensors"
            path.write_bytes(change_arrays(path.read_bytes(), rng))
        case 6:
            change_ids(inside / one_of(rng, ["users.parquet", "items.parquet"]), rng)
        case 7:
            path = inside / one_of(rng, ["users.parquet", "items.parquet"])
            path.write_bytes(change_bytes(path.read_bytes(), rng))
        case 8:
            path = inside / "arrays.safetensors"
            path.write_bytes(change_bytes(path.read_bytes(), rng))
        case _:
            every = [folder / "model.json", inside / "users.parquet", inside / "arrays.safetensors"]
            path = every[int(rng.integers(len(every)))]
            if rng.random() < 0.2:
                path.unlink()
                if rng.random() < 0.5:
                    path.mkdir()
            else:
                path.write_bytes(change_bytes(path.read_bytes(), rng))


def copied(model: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(model, to))
