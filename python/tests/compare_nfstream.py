# SPDX-License-Identifier: Apache-2.0
"""Compares the feature set `nfstream` with NFStream itself, flow by flow.

    TURBOFLOW=PROGRAM python compare_nfstream.py L7_CAPTURES

Times between packets may differ by up to a millisecond: NFStream truncates timestamps to milliseconds
before it subtracts them, while this project subtracts nanoseconds.
"""

import os
import sys
import warnings
from pathlib import Path

from nfstream import NFStreamer

sys.path.insert(0, str(Path(__file__).parent.parent))

import turboflow  # noqa: E402

CAPTURES = [
    "BitTorrent/bittorrent_utp.pcap", "DNS/dns-tunnel-iodine.pcap", "DTLS/stun_dtls_unidirectional_client.pcap",
    "Facebook/KakaoTalk_chat.pcap", "Google/dns.pcap", "HSRP/hsrp2.pcap", "ICMP/malformed_icmp.pcap",
    "LoLWildRift/lol_wild_rift_udp.pcap", "Mullvad/mullvad_dns.pcap", "OICQ/oicq.pcap", "Protobuf/protobuf.pcap",
    "RDP/rdp_over_tls.pcap", "S7Comm/s7comm.pcap", "SSDP/ssdp-m-search-ua.pcap", "TLS/google_ssl.pcap",
    "TLS/tls_invalid_reads.pcap", "TencentGames/tencent_games.pcap", "NetFlix/netflix.pcap", "Viber/viber.pcap",
    "Xiaomi/xiaomi.pcap",
]  # fmt: skip
KEY = ("src_ip", "src_port", "dst_ip", "dst_port", "protocol", "bidirectional_first_seen_ms")
GAP_MS = 1.0
RELATIVE = 1e-9


def theirs(path: Path) -> list[dict]:
    flows = NFStreamer(source=str(path), statistical_analysis=True, n_dissections=0, n_meters=1, decode_tunnels=False)
    return [dict(zip(flow.keys(), flow.values())) for flow in flows]


def ours(path: Path) -> list[dict]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", turboflow.TurboflowWarning)
        return turboflow.read(path, definition="nfstream").read_all().to_pylist()


def by_key(flows: list[dict]) -> dict:
    return {tuple(flow[name] for name in KEY): flow for flow in flows}


def agrees(name: str, our, their) -> bool:
    if isinstance(our, str) or isinstance(their, str) or our is None:
        return our == their
    allowed = GAP_MS if "_piat_" in name else RELATIVE * abs(their)
    return abs(our - their) <= allowed


def main() -> None:
    folder, flows, values, wrong = Path(sys.argv[1]), 0, 0, []
    for capture in CAPTURES:
        left, right = by_key(ours(folder / capture)), by_key(theirs(folder / capture))
        if left.keys() != right.keys():
            wrong.append(f"{capture}: flows that one has alone: {sorted(left.keys() ^ right.keys())[:4]}")
        for key in left.keys() & right.keys():
            flows += 1
            for name, our in left[key].items():
                values += 1
                their = right[key][name]
                if not agrees(name, our, their):
                    wrong.append(f"{capture}: {name} of {key}: {our}, and NFStream {their}")
    print(f"{len(CAPTURES)} captures, {flows} flows, {values} values, {len(wrong)} differ")
    sys.exit("\n".join(wrong[:20]) if wrong or flows == 0 else 0)


if __name__ == "__main__":
    # NFStream starts processes that import this file again: keep them from writing bytecode.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main()
