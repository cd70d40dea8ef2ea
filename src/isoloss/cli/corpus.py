"""`isoloss corpus list|add|tokenize`."""

from pathlib import Path
from typing import Annotated

import typer

from isoloss import text
from isoloss.cli.app import AsJson, Group, app, respond

corpus_app = typer.Typer(
    cls=Group, name="corpus", help="Text to train on: list, add, tokenize.", no_args_is_help=True
)
app.add_typer(corpus_app)


@corpus_app.command("list")
def corpus_list(as_json: AsJson = False) -> None:
    """List the corpora at hand, with their sizes and hashes.

    isoloss corpus list
    """
    from isoloss.corpus import library

    infos = [library.info(name) for name in library.names()]
    lines = (
        f"{info.name}: {info.train_documents} training pieces ({text.size(info.train_bytes)}), "
        f"{info.validation_documents} for validation ({text.size(info.validation_bytes)}), "
        f"hash {info.corpus_hash[:12]}"
        for info in infos
    )
    respond(as_json, infos, lines)


@corpus_app.command("add")
def corpus_add(
    name: Annotated[str, typer.Argument(help="What to call it: a-z, 0-9 and '-'.")],
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Text, JSONL or Parquet files, folders of them, .gz/.xz/.zst too; or hf:OWNER/NAME."
        ),
    ],
    text_column: Annotated[str, typer.Option(help="The column or key that holds the text.")] = "text",
    separator: Annotated[
        str | None,
        typer.Option(help=r"Cuts a text file into documents, e.g. '\n\n\n'. Default: one document a file."),
    ] = None,
    validation: Annotated[
        float,
        typer.Option(help="Share of the bytes held out, in parts of long documents and whole short ones."),
    ] = 0.08,
    max_bytes: Annotated[
        float, typer.Option(min=1, help="Of text, unpacked, in all; it is held in memory. Default 2 GiB.")
    ] = 2.0 * 2**30,
    as_json: AsJson = False,
) -> None:
    """Read text, split it into training and validation, and keep it under a name.

    isoloss corpus add novels novels/ more.jsonl.zst
    isoloss run architectures --set corpus=novels
    """
    from isoloss.corpus import library

    if separator is not None:
        separator = separator.replace("\\n", "\n").replace("\\t", "\t")
    info = library.add(
        name,
        paths,
        text_column=text_column,
        separator=separator,
        validation_fraction=validation,
        max_bytes=int(max_bytes),
    )
    lines = [
        f"{info.name}: {'there already, unchanged' if info.already_there else 'added'}",
        f"  training    {info.train_documents} pieces of text, {text.size(info.train_bytes)}",
        f"  validation  {info.validation_documents} pieces of text, {text.size(info.validation_bytes)}",
        f"  removed     {info.duplicates_removed} repeated documents, "
        f"{info.paragraphs_removed} shared paragraphs, {text.size(info.gap_bytes)} around held-out parts",
    ]
    respond(as_json, info, lines)


@corpus_app.command("tokenize")
def corpus_tokenize(
    name: Annotated[str, typer.Argument(help="A corpus from `isoloss corpus list`.")],
    vocabulary: Annotated[int, typer.Option(help="Entries of the byte-level BPE to train.")] = 1024,
    tokenizer: Annotated[Path | None, typer.Option(help="A tokenizer.json to use instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the token files of a corpus now; `isoloss run` does it by itself when needed.

    isoloss corpus tokenize starter --vocabulary 2048
    """
    from isoloss.corpus import library

    tokenized = library.tokenize(name, vocabulary, tokenizer)
    facts = {
        "folder": str(tokenized.tokenizer_path.parent),
        "vocab": tokenized.vocab,
        "train_tokens": tokenized.train.tokens,
        "validation_tokens": tokenized.validation.tokens,
        "train_bytes_per_token": tokenized.train.bytes_per_token,
        "validation_bytes_per_token": tokenized.validation.bytes_per_token,
        "corpus_hash": tokenized.corpus_hash,
        "tokenizer_hash": tokenized.tokenizer_hash,
    }
    respond(as_json, facts, (f"{key}: {value}" for key, value in facts.items()))
