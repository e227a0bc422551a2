"""The published tables of HyTAS by name: 2000 trained networks for each of five scenes."""

from hytas.data.datasets import RemoteFile

# Pinned to a commit of the authors' repository, so the content cannot change.
_ADDRESS = (
    "https://raw.githubusercontent.com/zhoufangqin/HyTAS/"
    "6439b86ab77ffdb1b0af5e978b4c6e8ffc6483d5/results"
)
_SHA256 = {
    "indian": "c4a63362233d788313733ba337b1380d5dac0c729240bf4d22536e1891c7d3da",
    "houston": "d21f27b43712afdfa4ae0f2b909a029e1f32d3fbc763720783ec8b1adf1ba13a",
    "pavia": "6c6fab75c844d5e7869b4a88c637f98392ee3e87700bf3dad47425ae0bcd43f9",
    "ksc": "221351532ad58739994f7f0aa294b36ca2bd0384a5a7bb5e361676f3f5dfe032",
    "salinas": "a0437f9d123373e0bcd748396ad4f58d19877a5a68cef03527a036ae86dfa36f",
}


def _file(scene: str, checksum: str) -> RemoteFile:
    name = f"{scene}_2000_new_all.csv"
    return RemoteFile(name, (f"{_ADDRESS}/{name}",), f"sha256:{checksum}")


PUBLISHED = {f"hytas-{scene}": _file(scene, checksum) for scene, checksum in _SHA256.items()}
"""Name of a published table -> its file (Zhou et al., HyTAS, ECCV 2024)."""
