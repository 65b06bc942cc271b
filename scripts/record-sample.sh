#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records samples/office.pcap and samples/two-links.pcapng: real programs talk to each other through
# three network namespaces; tcpdump and dumpcap listen on the router. docs/samples.md says what is in them.
#
#   sudo scripts/record-sample.sh [DIRECTORY]          default: samples/
#
#   client ══ one wire: untagged, VLAN 10, QinQ 200.30 ══ router ══ server     (+ GRE, IPIP, 6in4, VXLAN client–server)
#
# Needs root and: tcpdump tshark iproute2 ethtool nginx-light openssl curl dnsmasq-base bind9-dnsutils
# openssh-server openssh-client iperf3 iputils-ping traceroute chrony python3.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$(mkdir -p "${1:-$here/../samples}" && cd "${1:-$here/../samples}" && pwd)
work=$(mktemp -d)
client=tf-client router=tf-router server=tf-server
snap_bytes=160

main() {
    trap clean_up EXIT
    build_network
    start_soft_links
    start_services
    start_first_capture
    say "talking (about half a minute)"
    talk_first
    talk_together
    start_second_capture
    talk_over_tunnels
    talk_to_no_one
    stop_captures
    say "done"
    capinfos -c -s -u -y "$out/office.pcap" "$out/two-links.pcapng"
}

say() { echo "record-sample: $*" >&2; }
on() { ip netns exec "$@"; }
# NAMESPACE COMMAND...; leaves the process id in $!.
background() { ip netns exec "$@" </dev/null >>"$work/log" 2>&1 & }
quietly() { "$@" >>"$work/log" 2>&1 || true; }

clean_up() {
    local status=$?
    ((status == 0)) || tail -n 20 "$work/log" >&2 || true
    for namespace in $client $router $server; do
        # Daemons may have forked, so end every process in these namespaces.
        ip netns pids $namespace 2>/dev/null | xargs -r kill 2>/dev/null || true
    done
    sleep 0.3
    for namespace in $client $router $server; do ip netns del $namespace 2>/dev/null || true; done
    rm -rf "$work"
    return $status
}

# --- the network ---------------------------------------------------------------------------------

build_network() {
    for namespace in $client $router $server; do
        ip netns add $namespace
        on $namespace sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 \
            net.ipv6.conf.all.accept_ra=0 net.ipv6.conf.default.accept_ra=0
        on $namespace ip link set lo up
    done
    on $router sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    # MAC addresses are the documentation range of RFC 7042, section 2.1.2.
    ip link add eth0 netns $client address 00:00:5e:00:53:01 mtu 1512 type veth \
        peer name lan0 netns $router address 00:00:5e:00:53:02 mtu 1512
    ip link add wan0 netns $router address 00:00:5e:00:53:03 type veth \
        peer name eth0 netns $server address 00:00:5e:00:53:04
    # Without offloads, the captures have the packets of a real wire, with their checksums.
    for link in "$client eth0" "$router lan0" "$router wan0" "$server eth0"; do
        on ${link% *} ethtool -K ${link#* } tso off gso off gro off tx off >/dev/null
    done
    # A switch with spanning tree. Its BPDUs are the non-IP frames of an office network.
    on $router ip link add lan type bridge stp_state 1 forward_delay 200 hello_time 200
    on $router ip link set lan address 00:00:5e:00:53:02
    on $router ip link set lan0 master lan
    on $router ip link set lan mtu 1500
    for link in lan0 lan wan0; do on $router ip link set $link up; done
    on $client ip link set eth0 up
    on $server ip link set eth0 up
    address $client eth0 192.0.2.10/25 2001:db8:1::10/64
    address $router lan 192.0.2.1/25 2001:db8:1::1/64
    address $router wan0 198.51.100.1/25 2001:db8:2::1/64
    address $server eth0 198.51.100.10/25 2001:db8:2::10/64
    on $client ip route replace default via 192.0.2.1 mtu lock 1500
    on $client ip -6 route replace default via 2001:db8:1::1 mtu lock 1500
    on $server ip route replace default via 198.51.100.1
    on $server ip -6 route replace default via 2001:db8:2::1
}

address() { # NAMESPACE LINK ADDRESS...
    local namespace=$1 link=$2
    shift 2
    for one in "$@"; do on $namespace ip address add "$one" dev "$link"; done
}

soft_link() { # NAMESPACE DEVICE ADDRESS-V4 ADDRESS-V6 ARGUMENT...
    local namespace=$1 device=$2 v4=$3 v6=$4
    shift 4
    background $namespace python3 "$here/soft_link.py" "$1" "$device" "${@:2}"
    for _ in $(seq 50); do on $namespace ip link show "$device" >/dev/null 2>&1 && break || sleep 0.1; done
    on $namespace ip link set "$device" up
    [[ $v4 == - ]] || address $namespace "$device" "$v4"
    [[ $v6 == - ]] || address $namespace "$device" "$v6"
}

start_soft_links() {
    soft_link $client vlan10 192.0.2.130/26 2001:db8:10::10/64 vlan --wire eth0 --tags 0x8100:10
    soft_link $router vlan10 192.0.2.129/26 2001:db8:10::1/64 vlan --wire lan0 --tags 0x8100:10
    soft_link $client qinq30 192.0.2.194/27 2001:db8:30::10/64 vlan --wire eth0 --tags 0x88a8:200,0x8100:30
    soft_link $router qinq30 192.0.2.193/27 2001:db8:30::1/64 vlan --wire lan0 --tags 0x88a8:200,0x8100:30
    local ends="--local 192.0.2.10 --remote 198.51.100.10" back="--local 198.51.100.10 --remote 192.0.2.10"
    for kind in gre ipip 6in4; do
        case $kind in
        gre) here_v4=203.0.113.1/30 there_v4=203.0.113.2/30 here_v6=2001:db8:47::1/64 there_v6=2001:db8:47::2/64 ;;
        ipip) here_v4=203.0.113.5/30 there_v4=203.0.113.6/30 here_v6=- there_v6=- ;;
        6in4) here_v4=- there_v4=- here_v6=2001:db8:41::1/64 there_v6=2001:db8:41::2/64 ;;
        esac
        soft_link $client t-$kind $here_v4 $here_v6 tunnel --kind $kind $ends
        soft_link $server t-$kind $there_v4 $there_v6 tunnel --kind $kind $back
        on $client ip link set t-$kind mtu 1400
        on $server ip link set t-$kind mtu 1400
    done
    on $client ip link add vx7 address 00:00:5e:00:53:11 type vxlan id 7 remote 198.51.100.10 dstport 4789 dev eth0
    on $server ip link add vx7 address 00:00:5e:00:53:12 type vxlan id 7 remote 192.0.2.10 dstport 4789 dev eth0
    on $client ip link set vx7 mtu 1400 up
    on $server ip link set vx7 mtu 1400 up
    address $client vx7 203.0.113.9/30
    address $server vx7 203.0.113.10/30
}

# --- the servers ---------------------------------------------------------------------------------

start_services() {
    say "starting servers"
    local www=$work/www
    mkdir -p "$www" "$work/chrony"
    chmod 755 "$work" "$www"
    for page in $(seq 40); do head -c $((200 + page * page * 11)) /dev/zero | tr '\0' 'x' >"$www/page$page.html"; done
    head -c 2000000 /dev/zero >"$www/bulk.bin"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=www.example \
        -keyout "$work/key.pem" -out "$work/cert.pem" 2>>"$work/log"
    cat >"$work/nginx.conf" <<NGINX
user root; daemon off; pid $work/nginx.pid; error_log $work/nginx.log; worker_processes 1;
events { worker_connections 256; }
http {
  access_log off; keepalive_timeout 5;
  client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fcgi;
  uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
  server {
    listen 80; listen [::]:80; listen 443 ssl http2; listen [::]:443 ssl http2;
    ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
    root $www;
  }
}
NGINX
    background $server nginx -c "$work/nginx.conf" -e "$work/nginx.log"
    local long
    long=$(printf '%0200d' 0)
    background $server dnsmasq --keep-in-foreground --no-resolv --no-hosts --no-daemon --conf-file=/dev/null --user=root \
        --pid-file="$work/dnsmasq.pid" --local=/example/ --host-record=www.example,198.51.100.10,2001:db8:2::10 \
        --host-record=router.example,192.0.2.1,2001:db8:1::1 --cname=web.example,www.example --mx-host=example,mail.example,10 \
        --txt-record=small.example,"a short text" \
        --txt-record=big.example,"1$long","2$long","3$long","4$long","5$long","6$long","7$long" \
        --srv-host=_imap._tcp.example,mail.example,993
    cat >"$work/chrony.conf" <<CHRONY
local stratum 8
allow all
cmdport 0
pidfile $work/chrony/pid
bindcmdaddress /
driftfile $work/chrony/drift
CHRONY
    background $server chronyd -x -d -u root -f "$work/chrony.conf"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/host_key"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/user_key"
    cp "$work/user_key.pub" "$work/authorized_keys"
    mkdir -p /run/sshd
    background $server /usr/sbin/sshd -D -f /dev/null -o HostKey="$work/host_key" -o UsePAM=no -o StrictModes=no \
        -o AuthorizedKeysFile="$work/authorized_keys" -o PermitRootLogin=yes -o PidFile=none -o UseDNS=no -o Subsystem="sftp internal-sftp"
    background $server iperf3 -s
    background $server python3 -c '
import socket
echo = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, 136)   # UDP-Lite, RFC 3828
echo.bind(("::", 7007))
while True:
    payload, peer = echo.recvfrom(2048)
    echo.sendto(payload, peer)'
    sleep 1
}

start_first_capture() {
    background $router tcpdump -Z root -i lan0 -s $snap_bytes -B 8192 -n -U -w "$out/office.pcap"
    tcpdump_pid=$!
    sleep 1
}

start_second_capture() {
    background $server dumpcap -q -s $snap_bytes -i eth0 -i t-gre -i t-6in4 -w "$work/two-links.pcapng"
    dumpcap_pid=$!
    sleep 2
}

stop_captures() {
    sleep 2
    kill "$tcpdump_pid" "$dumpcap_pid"
    wait "$tcpdump_pid" "$dumpcap_pid" || true
    # dumpcap's section header names this machine's processor and kernel, which must not be
    # published.
    python3 "$here/strip_section_options.py" "$work/two-links.pcapng" "$out/two-links.pcapng"
}

# --- the talk ------------------------------------------------------------------------------------

fetch() { quietly on $client curl -sk --max-time 10 -o /dev/null "$@"; }
fetch_many() { # COUNT BASE: one connection a page, as old browsers do
    for page in $(seq "$1"); do fetch "$2/page$((page % 40 + 1)).html"; done
}
remote_shell() { # ADDRESS COMMAND
    quietly on $client ssh -F /dev/null -i "$work/user_key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "root@$1" "$2"
}

talk_first() {
    for name in www router web small big nothere; do
        for type in A AAAA TXT; do quietly on $client dig +tries=1 +time=2 @198.51.100.10 $name.example $type; done
    done
    quietly on $client dig +noedns @198.51.100.10 big.example TXT    # truncated, asked again over TCP
    quietly on $client dig @2001:db8:2::10 example MX
    quietly on $client dig @2001:db8:2::10 _imap._tcp.example SRV
    quietly on $client ping -c 4 -i 0.2 198.51.100.10
    quietly on $client ping -c 4 -i 0.2 2001:db8:2::10
    quietly on $client ping -c 3 -i 0.2 -s 4000 198.51.100.10        # three fragments a packet
    quietly on $client ping -c 3 -i 0.2 -s 4000 2001:db8:2::10
    quietly on $client traceroute -n -w 1 -q 2 198.51.100.10
    quietly on $client traceroute -n -w 1 -q 2 -6 2001:db8:2::10
    quietly on $client chronyd -Q -t 4 -u root "server 198.51.100.10 iburst" "pidfile $work/chrony/q" "cmdport 0"
}

talk_together() {
    (for _ in $(seq 8); do remote_shell 198.51.100.10 "date; uptime; sleep 1"; done) & one=$!
    (fetch_many 100 http://198.51.100.10; fetch_many 60 "http://[2001:db8:2::10]") & two=$!
    (fetch_many 40 https://198.51.100.10; fetch_many 25 "https://[2001:db8:2::10]") & three=$!
    (fetch --interface 192.0.2.130 http://192.0.2.129/ ; talk_on_vlans) & four=$!
    fetch http://198.51.100.10/bulk.bin
    fetch "http://[2001:db8:2::10]/bulk.bin"
    quietly on $client curl -sk --http2 --parallel -o /dev/null -o /dev/null -o /dev/null \
        https://198.51.100.10/page{30,35,40}.html
    quietly on $client scp -q -F /dev/null -i "$work/user_key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        "$work/www/bulk.bin" root@198.51.100.10:/dev/null
    quietly on $client iperf3 -c 198.51.100.10 -u -b 4M -l 1200 -t 2
    quietly on $client iperf3 -c 2001:db8:2::10 -n 800K
    quietly on $client python3 -c '
import socket
lite = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, 136)
lite.settimeout(2)
for round in range(12):
    lite.sendto(b"u" * (20 + 30 * round), ("2001:db8:2::10", 7007))
    lite.recv(2048)'
    wait $one $two $three $four
}

talk_on_vlans() {
    on $client ip route replace 198.51.100.64/26 via 192.0.2.129
    on $client ip route replace 198.51.100.32/27 via 192.0.2.193
    for far in 198.51.100.70 198.51.100.40 198.51.100.71; do
        on $server ip address replace $far/32 dev eth0
        on $router ip route replace $far/32 via 198.51.100.10
    done
    for far in 198.51.100.70 198.51.100.71 198.51.100.40; do
        quietly on $client ping -c 3 -i 0.2 $far
        quietly on $client dig @$far www.example A
        fetch_many 12 http://$far
        fetch_many 4 https://$far
    done
    quietly on $client ping -c 3 -i 0.2 2001:db8:10::1
    quietly on $client ping -c 3 -i 0.2 2001:db8:30::1
    quietly on $client ping -c 2 -i 0.2 -s 3000 192.0.2.193
}

talk_over_tunnels() {
    for far in 203.0.113.2 203.0.113.6 203.0.113.10 "[2001:db8:47::2]" "[2001:db8:41::2]"; do
        local bare=${far//[\[\]]/}
        quietly on $client ping -c 3 -i 0.2 "$bare"
        quietly on $client dig +tries=1 "@$bare" www.example AAAA
        fetch_many 6 "http://$far"
        fetch "https://$far/page40.html"
    done
}

talk_to_no_one() {
    fetch http://198.51.100.10:81/                                    # refused: RST
    fetch "http://[2001:db8:2::10]:81/"
    quietly on $client dig -p 5300 +tries=1 +time=1 @198.51.100.10 closed.example  # port unreachable
    quietly on $client ping -c 2 -W 1 192.0.2.99                      # no such neighbour: ARP alone
    quietly on $client ping -c 2 -W 1 2001:db8:1::99
    quietly on $client ping -c 2 -W 4 198.51.100.99                   # the router says: host unreachable
    quietly on $client dig +tries=1 +time=1 -b 192.0.2.10 @224.0.0.251 -p 5353 printer.local  # multicast
    quietly on $client python3 -c '
import socket, struct, time
group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)             # IGMP report and leave
group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("233.252.0.7") + socket.inet_aton("192.0.2.10"))
time.sleep(1)'
}

main "$@"
