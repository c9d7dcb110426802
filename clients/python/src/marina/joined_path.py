"""Lets this package and the code that protoc makes of Marina's protos be there together."""

from __future__ import annotations

import os
import sys
from typing import Iterable, Iterator, List


class JoinedPath(List[str]):
    """Where Python looks for the parts of a package: in its own folder, and then in each folder of its name on `sys.path`.

    protoc writes modules for gRPC to `marina/gateway/v1` and `marina/options/v1`, because their proto packages are named so. As
    a package has the first folder that is found only, `marina.gateway` would not be found next to this one. `sys.path` is
    read each time: programs change it while they run.
    """

    def __init__(self, name: str, own: Iterable[str]) -> None:
        super().__init__(own)
        self._name = name

    def __iter__(self) -> Iterator[str]:
        own = list(super().__iter__())
        yield from own
        for entry in list(sys.path):
            folder = os.path.join(entry or os.getcwd(), self._name)
            if folder not in own and os.path.isdir(folder):
                yield folder
