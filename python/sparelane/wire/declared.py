"""The dataclass of the declared settings; `declared.pyi` has its types."""

from sparelane.wire.settings import make_declared

Declared = make_declared()
