"""`mempalace status`: what is stored, what is behind, what is wrong.

Owns: how it is printed, and the exit code: 4 where words may be missing.
Never: looks at the palace or a root itself.
Called by: the table in mempalace.cli.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from mempalace import config as configuration
from mempalace.cli.output import is_styled, minute, say, shown, write_json
from mempalace.errors import EXIT_DEGRADED, EXIT_OK
from mempalace.status import Root, Stock, as_values, lag_seconds, take_stock

_SECOND = 1_000_000  # microseconds
_KINDS_SHOWN = 6
_PLACES_SHOWN = 3  # of what is quarantined; --json has more


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool) -> int:
    """Tell what is stored, what is not read yet, and what is wrong.

    Exit code 4 where words may be missing from the palace, else 0.
    """
    stock = take_stock(configuration.load())
    if as_json:
        write_json(as_values(stock))
    else:
        for line in _lines(stock):
            say(line)
    return EXIT_DEGRADED if stock.degraded else EXIT_OK


def _lines(stock: Stock) -> Iterator[str]:
    yield f"{_bold('palace')}   {shown(stock.home)}"
    yield f"{_bold('watcher')}  {_daemon(stock)}"
    yield ""
    yield from _wings(stock)
    is_alone = all(root.state == "missing" for root in stock.roots)
    for root in stock.roots:
        if root.state != "missing" or is_alone:
            yield ""
            yield from _root(root)
    yield ""
    yield from _files(stock)
    for notice in stock.notices:
        yield f"note: {shown(notice)}"
    for reason in stock.degraded:
        yield f"degraded: {shown(reason)}"


def _bold(text: str) -> str:
    return click.style(text, bold=True) if is_styled() else text


def _time(seconds: float | None) -> str:
    return minute(None if seconds is None else int(seconds * _SECOND))


def _daemon(stock: Stock) -> str:
    daemon = stock.daemon
    if daemon.up:
        return f"{daemon.state}, process {daemon.pid}, since {_time(daemon.started_at)}"
    return f"down since {_time(daemon.seen_at)}" if daemon.seen_at else "not running"


def _wings(stock: Stock) -> Iterator[str]:
    yield f"{'wing':<28} {'exchanges':>10} {'talk':>10} {'tools':>10}   (talk, tools: drawers)"
    for wing in stock.wings:
        yield (
            f"{wing.name:<28} {wing.exchanges:>10,} {wing.talk_drawers:>10,}"
            f" {wing.tools_drawers:>10,}"
        )
    exchanges = sum(wing.exchanges for wing in stock.wings)
    talk = sum(wing.talk_drawers for wing in stock.wings)
    tools = sum(wing.tools_drawers for wing in stock.wings)
    yield f"{'all':<28} {exchanges:>10,} {talk:>10,} {tools:>10,}"
    headless = sum(wing.headless for wing in stock.wings)
    yield (
        f"{stock.sessions:,} sessions; {headless:,} exchanges without a prompt,"
        f" {stock.retired:,} retired"
    )
    if stock.index is not None:
        yield f"vectors: {stock.index.vectors:,} drawers, {stock.index.waiting:,} wait for one"
    else:
        yield "vectors: off (index.vectors)"


def _root(root: Root) -> Iterator[str]:
    yield f"{_bold('root')}     {shown(root.path)} ({root.source}): {root.state}"
    if root.state == "missing":
        return
    excluded = f", {root.excluded_files:,} excluded" if root.excluded_files else ""
    yield (
        f"         {root.files:,} files{excluded}; {root.bytes_accounted:,} of"
        f" {root.bytes_on_disk:,} bytes accounted for"
    )
    if root.unread_files:
        yield (
            f"         {root.unread_bytes:,} bytes of {root.unread_files:,} files unread, the"
            f" oldest since {_time(root.oldest_unread_at)}"
        )
    if root.purged_at is not None:
        yield f"         the first of these is purged by Claude Code at {_time(root.purged_at)}"
    if root.stale_files:
        yield f"         {root.stale_files:,} files are to be read once more"


def _files(stock: Stock) -> Iterator[str]:
    yield (
        f"{stock.files:,} files known, {stock.gone_files:,} of them gone,"
        f" {len(stock.failed_files):,} failed; lag {lag_seconds(stock):,.0f} s"
    )
    if stock.forgotten:
        yield f"forgotten: {stock.forgotten:,} names of records are kept out for good"
    if stock.quarantine:
        yield f"quarantined: {_counts(stock.quarantine)}"
        for place in stock.quarantined[:_PLACES_SHOWN]:
            yield f"  {shown(place.path)}, byte {place.offset:,}, {place.length:,} long"
    if stock.left_out:
        yield f"left out by rule: {_counts(stock.left_out)}"
    if stock.unknown_types:
        yield f"unknown record types: {_counts(stock.unknown_types)}"


def _counts(counts: Mapping[str, int]) -> str:
    few = list(counts.items())[:_KINDS_SHOWN]
    more = len(counts) - len(few)
    text = ", ".join(f"{shown(name)} {count:,}" for name, count in few)
    return f"{text} and {more} more kinds (--json)" if more else text
