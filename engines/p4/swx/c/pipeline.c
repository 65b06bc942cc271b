/* SPDX-License-Identifier: Apache-2.0
 * Frames of a byte stream through DPDK's software pipeline (SWX), and what comes out, back.
 *
 * Every frame of the stream is preceded by its length, 4 bytes in network byte order.
 *
 * The pipeline interleaves some packets: it receives the next ones before it has worked through the
 * first. But it works through them one after the other, in order, without a switch in between
 * (there are no tables in our programs). So a frame may be rewritten where it lies: what grows in
 * front of it overwrites frames that have left.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_port.h>

enum {
	/* The longest frame that is taken. */
	MAX_FRAME = 65535,
	/* Headers that a program may put in front of the first frame. */
	HEADROOM = 1024,
	/* Bytes that a program may look at behind a damaged frame. */
	TAILROOM = 16384,
	LENGTH_BYTES = 4,
	IN_BYTES = 1 << 18,
	OUT_BYTES = 1 << 18,
	PORT_NOWHERE = 0,
	PORT_CPU = 1,
	/* Instructions between two looks whether all frames have left. */
	INSTRUCTIONS = 4096,
};

struct stream {
	int fd;
	uint64_t entered, left;
	uint32_t in_start, in_end, out_end;
	int failed;
	uint8_t in[HEADROOM + IN_BYTES + TAILROOM];
	uint8_t out[OUT_BYTES];
};

struct swx {
	struct rte_swx_pipeline *pipeline;
	struct stream *stream;
};

static uint32_t length_at(const uint8_t *at)
{
	return (uint32_t) at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

/* The length of the frame at the start of what was read; 0 if it is not there as a whole. */
static uint32_t next_frame(const struct stream *stream)
{
	uint32_t bytes = stream->in_end - stream->in_start;

	if (bytes < LENGTH_BYTES)
		return 0;
	uint32_t length = length_at(stream->in + stream->in_start);
	return bytes - LENGTH_BYTES < length ? 0 : length;
}

static int receive(void *port, struct rte_swx_pkt *packet)
{
	struct stream *stream = port;
	uint32_t length = next_frame(stream);

	if (length == 0 || length > MAX_FRAME)
		return 0;
	packet->handle = NULL;
	packet->pkt = stream->in;
	packet->offset = stream->in_start + LENGTH_BYTES;
	packet->length = length;
	stream->in_start += LENGTH_BYTES + length;
	stream->entered++;
	return 1;
}

static int write_all(struct stream *stream)
{
	for (uint32_t at = 0; at < stream->out_end;) {
		ssize_t wrote = write(stream->fd, stream->out + at, stream->out_end - at);
		if (wrote < 0 && errno != EINTR)
			return -errno;
		if (wrote > 0)
			at += wrote;
	}
	stream->out_end = 0;
	return 0;
}

static void send_up(void *port, struct rte_swx_pkt *packet)
{
	struct stream *stream = port;
	uint32_t length = packet->length;

	stream->left++;
	if (length > OUT_BYTES - LENGTH_BYTES || stream->failed)
		return;
	if (stream->out_end + LENGTH_BYTES + length > OUT_BYTES)
		stream->failed = write_all(stream);
	if (stream->failed)
		return;
	uint8_t *to = stream->out + stream->out_end;
	to[0] = length >> 24;
	to[1] = length >> 16;
	to[2] = length >> 8;
	to[3] = length;
	memcpy(to + LENGTH_BYTES, packet->pkt + packet->offset, length);
	stream->out_end += LENGTH_BYTES + length;
}

static void drop(void *port, struct rte_swx_pkt *packet)
{
	struct stream *stream = port;

	(void) packet;
	stream->left++;
}

static void *create(void *args) { return args; }
static void release(void *port) { (void) port; }
static void no_clone(void *port, struct rte_swx_pkt *packet) { (void) port; (void) packet; }
static void no_clone_cut(void *port, struct rte_swx_pkt *packet, uint32_t length)
{
	(void) port;
	(void) packet;
	(void) length;
}
static void flush(void *port) { (void) port; }
static void in_stats(void *port, struct rte_swx_port_in_stats *stats)
{
	(void) port;
	memset(stats, 0, sizeof(*stats));
}
static void out_stats(void *port, struct rte_swx_port_out_stats *stats)
{
	(void) port;
	memset(stats, 0, sizeof(*stats));
}

static struct rte_swx_port_in_ops IN = {
	.create = create, .free = release, .pkt_rx = receive, .stats_read = in_stats,
};
static struct rte_swx_port_out_ops UP = {
	.create = create, .free = release, .pkt_tx = send_up, .pkt_fast_clone_tx = no_clone,
	.pkt_clone_tx = no_clone_cut, .flush = flush, .stats_read = out_stats,
};
static struct rte_swx_port_out_ops DOWN = {
	.create = create, .free = release, .pkt_tx = drop, .pkt_fast_clone_tx = no_clone,
	.pkt_clone_tx = no_clone_cut, .flush = flush, .stats_read = out_stats,
};

/* Starts DPDK: no huge pages, no devices, no files, no rights. `processors` are those that this
 * thread may run on. */
int swx_start(const char *processors)
{
	/* DPDK changes their order. */
	char *arguments[] = {
		"turboflow-swx", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry",
		"--log-level=*:error", "-m", "512", "--lcores", strdup(processors), NULL,
	};
	int count = sizeof(arguments) / sizeof(arguments[0]) - 1;

	return rte_eal_init(count, arguments) < 0 ? -1 : 0;
}

/* A pipeline whose ports are both ends of the stream `fd`. NULL if it cannot be made. */
struct swx *swx_new(int fd)
{
	struct swx *swx = calloc(1, sizeof(*swx));
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!swx || !stream)
		return NULL;
	stream->fd = fd;
	stream->in_start = stream->in_end = HEADROOM;
	swx->stream = stream;
	if (rte_swx_pipeline_config(&swx->pipeline, "turboflow", 0))
		return NULL;
	if (rte_swx_pipeline_port_in_type_register(swx->pipeline, "stream_in", &IN)
	    || rte_swx_pipeline_port_out_type_register(swx->pipeline, "stream_up", &UP)
	    || rte_swx_pipeline_port_out_type_register(swx->pipeline, "nowhere", &DOWN)
	    || rte_swx_pipeline_port_in_config(swx->pipeline, 0, "stream_in", stream)
	    || rte_swx_pipeline_port_out_config(swx->pipeline, PORT_NOWHERE, "nowhere", stream)
	    || rte_swx_pipeline_port_out_config(swx->pipeline, PORT_CPU, "stream_up", stream))
		return NULL;
	return swx;
}

int swx_struct(struct swx *swx, const char *name, const char *const *fields, const uint32_t *bits,
	       uint32_t count, int last_varies)
{
	struct rte_swx_field_params *params = calloc(count, sizeof(*params));

	if (!params)
		return -ENOMEM;
	for (uint32_t at = 0; at < count; at++) {
		params[at].name = fields[at];
		params[at].n_bits = bits[at];
	}
	int status = rte_swx_pipeline_struct_type_register(swx->pipeline, name, params, count,
							   last_varies);
	free(params);
	return status;
}

int swx_header(struct swx *swx, const char *name, const char *type)
{
	return rte_swx_pipeline_packet_header_register(swx->pipeline, name, type);
}

int swx_metadata(struct swx *swx, const char *type)
{
	return rte_swx_pipeline_packet_metadata_register(swx->pipeline, type);
}

int swx_registers(struct swx *swx, const char *name, uint32_t count, uint64_t value)
{
	return rte_swx_pipeline_regarray_config(swx->pipeline, name, count, value);
}

int swx_action(struct swx *swx, const char *name, const char *args, const char **instructions,
	       uint32_t count)
{
	return rte_swx_pipeline_action_config(swx->pipeline, name, args, instructions, count);
}

int swx_apply(struct swx *swx, const char **instructions, uint32_t count)
{
	int status = rte_swx_pipeline_instructions_config(swx->pipeline, instructions, count);

	return status ? status : rte_swx_pipeline_build(swx->pipeline);
}

/* Moves what was read, but not taken, to the front, and reads more. 0 at the end of the stream. */
static ssize_t read_more(struct stream *stream)
{
	uint32_t bytes = stream->in_end - stream->in_start;

	memmove(stream->in + HEADROOM, stream->in + stream->in_start, bytes);
	stream->in_start = HEADROOM;
	stream->in_end = HEADROOM + bytes;
	ssize_t got;
	do {
		got = read(stream->fd, stream->in + stream->in_end, HEADROOM + IN_BYTES - stream->in_end);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		stream->in_end += got;
	return got < 0 ? -errno : got;
}

/* Runs until the stream ends. A frame that is too long for the pipeline ends it, too. */
int swx_run(struct swx *swx)
{
	struct stream *stream = swx->stream;

	for (;;) {
		ssize_t got = read_more(stream);
		if (got <= 0)
			return got;
		if (stream->in_end - stream->in_start >= LENGTH_BYTES
		    && length_at(stream->in + stream->in_start) - 1 >= MAX_FRAME)
			return -EMSGSIZE;
		while (next_frame(stream) != 0 && length_at(stream->in + stream->in_start) <= MAX_FRAME)
			rte_swx_pipeline_run(swx->pipeline, INSTRUCTIONS);
		while (stream->left != stream->entered)
			rte_swx_pipeline_run(swx->pipeline, INSTRUCTIONS);
		if (!stream->failed)
			stream->failed = write_all(stream);
		if (stream->failed)
			return stream->failed;
	}
}
