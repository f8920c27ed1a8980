from harn_temporal.manifest.loading import Manifest, load_manifest, parse_manifest

__all__ = ["Manifest", "load_manifest", "parse_manifest"]
