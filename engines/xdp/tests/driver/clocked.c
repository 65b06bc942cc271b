// SPDX-License-Identifier: GPL-2.0-only
// A network device that receives what it sends, with a clock of its own. It is the only device in
// the tests that tells a program when a frame arrived: few cards do so, and the kernel's virtual
// devices do not. For kernels from 6.8 on; scripts/try-kernels.sh builds and loads it.
#include <linux/etherdevice.h>
#include <linux/filter.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/xdp.h>

// The clock's time for the first frame, and the difference to each next one.
#define FIRST_NS 1700000000123456789ULL
#define STEP_NS 1000003ULL

struct clocked {
    struct bpf_prog __rcu *program;
    struct xdp_rxq_info queue;
    u64 frames;
};

// The program's context, followed by the timestamp that the driver returns for it.
struct heard {
    struct xdp_buff buffer;
    u64 timestamp_ns;
};

static struct net_device *device;

static int clocked_rx_timestamp(const struct xdp_md *context, u64 *timestamp_ns)
{
    const struct heard *heard = (const void *)context;
    *timestamp_ns = heard->timestamp_ns;
    return 0;
}

static const struct xdp_metadata_ops metadata = {
    .xmo_rx_timestamp = clocked_rx_timestamp,
};

// No frame is passed on, whatever the verdict: only programs receive frames here.
static netdev_tx_t clocked_xmit(struct sk_buff *frame, struct net_device *dev)
{
    struct clocked *clocked = netdev_priv(dev);
    struct bpf_prog *program;
    struct heard heard;
    void *page = (void *)__get_free_page(GFP_ATOMIC);

    if (page && XDP_PACKET_HEADROOM + frame->len <= SKB_MAX_HEAD(0)) {
        skb_copy_bits(frame, 0, page + XDP_PACKET_HEADROOM, frame->len);
        xdp_init_buff(&heard.buffer, PAGE_SIZE, &clocked->queue);
        xdp_prepare_buff(&heard.buffer, page, XDP_PACKET_HEADROOM, frame->len, true);
        rcu_read_lock();
        program = rcu_dereference(clocked->program);
        if (program) {
            heard.timestamp_ns = FIRST_NS + STEP_NS * clocked->frames++;
            bpf_prog_run_xdp(program, &heard.buffer);
        }
        rcu_read_unlock();
    }
    if (page)
        free_page((unsigned long)page);
    dev_kfree_skb(frame);
    return NETDEV_TX_OK;
}

static int clocked_bpf(struct net_device *dev, struct netdev_bpf *command)
{
    struct clocked *clocked = netdev_priv(dev);
    struct bpf_prog *old;

    if (command->command != XDP_SETUP_PROG)
        return -EINVAL;
    old = rtnl_dereference(clocked->program);
    rcu_assign_pointer(clocked->program, command->prog);
    clocked->frames = 0;
    if (old)
        bpf_prog_put(old);
    return 0;
}

static const struct net_device_ops operations = {
    .ndo_start_xmit = clocked_xmit,
    .ndo_bpf = clocked_bpf,
};

static void clocked_setup(struct net_device *dev)
{
    ether_setup(dev);
    eth_hw_addr_random(dev);
    dev->netdev_ops = &operations;
    dev->xdp_metadata_ops = &metadata;
    dev->xdp_features = NETDEV_XDP_ACT_BASIC;
}

static int __init clocked_init(void)
{
    struct clocked *clocked;
    int error;

    device = alloc_netdev(sizeof(*clocked), "clocked%d", NET_NAME_ENUM, clocked_setup);
    if (!device)
        return -ENOMEM;
    clocked = netdev_priv(device);
    error = register_netdev(device);
    if (error)
        goto unmake;
    error = xdp_rxq_info_reg(&clocked->queue, device, 0, 0);
    if (!error)
        return 0;
    unregister_netdev(device);
unmake:
    free_netdev(device);
    return error;
}

static void __exit clocked_exit(void)
{
    struct clocked *clocked = netdev_priv(device);
    xdp_rxq_info_unreg(&clocked->queue);
    unregister_netdev(device);
    free_netdev(device);
}

module_init(clocked_init);
module_exit(clocked_exit);
MODULE_DESCRIPTION("A device that hears what it sends, by a clock of its own");
MODULE_LICENSE("GPL");
