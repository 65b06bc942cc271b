// SPDX-License-Identifier: Apache-2.0
// What the inspector needs of nDPI, for the headers of 4.2 to 5.x. `build.rs` tests with the
// compiler what the headers have, and defines HAS_... accordingly. `ffi.rs` declares these
// functions to Rust.
#define _GNU_SOURCE
#include <malloc.h>
#include <ndpi_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAS_NESTED_PROTOCOL
#define APPLICATION(found) ((found).proto.app_protocol)
#define MASTER(found) ((found).proto.master_protocol)
#else
#define APPLICATION(found) ((found).app_protocol)
#define MASTER(found) ((found).master_protocol)
#endif

enum state { UNDECIDED, KNOWN, COMPLETE };
enum host { NO_HOST, TLS_SERVER, DNS_QUERY, HTTP_HOST };

// Must have the same members in the same order as `Finding` in ffi.rs.
struct turboflow_finding {
    uint64_t risk;
    uint16_t master;
    uint16_t application;
    uint16_t category;
    uint8_t confidence;
    uint8_t state;
    uint8_t host_kind;
    char host[256];
    char ja3[33];
    char ja4[37];
};

// Maps the library's numbers of confidences to ours. `names.rs` fills it, using the names.
static uint8_t confidence_scale[32];

void turboflow_ndpi_scale(uint8_t number, uint8_t scaled) {
    if (number < sizeof confidence_scale)
        confidence_scale[number] = scaled;
}

struct ndpi_detection_module_struct *turboflow_ndpi_open(void) {
    // The version of the headers may differ from that of the loaded library.
    if (ndpi_detection_get_sizeof_ndpi_flow_struct() != sizeof(struct ndpi_flow_struct))
        return NULL;
    // 0 means "no preferences" in 4.2, and "no context shared with other modules" later.
    struct ndpi_detection_module_struct *module = ndpi_init_detection_module(0);
    if (!module)
        return NULL;
#ifdef HAS_BITMASK
    NDPI_PROTOCOL_BITMASK all;
    NDPI_BITMASK_SET_ALL(all);
    ndpi_set_protocol_detection_bitmask2(module, &all);
#endif
    ndpi_finalize_initialization(module);
    return module;
}

void turboflow_ndpi_close(struct ndpi_detection_module_struct *module) {
    ndpi_exit_detection_module(module);
}

struct ndpi_flow_struct *turboflow_ndpi_flow(void) {
    return ndpi_calloc(1, sizeof(struct ndpi_flow_struct));
}

void turboflow_ndpi_free(struct ndpi_flow_struct *flow) {
    ndpi_free_flow(flow);
}

// Bytes of the heap in use; 0 if the C library does not provide that.
uint64_t turboflow_ndpi_heap(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 33))
    struct mallinfo2 heap = mallinfo2();
    return (uint64_t)heap.uordblks + heap.hblkhd;
#else
    return 0;
#endif
}

static int is_one_of(const ndpi_protocol *found, uint16_t number) {
    return MASTER(*found) == number || APPLICATION(*found) == number;
}

// Copies a text that should end within `room` bytes, and always null-terminates the copy.
static void copy(char *to, size_t to_room, const char *from, size_t room) {
    size_t length = strnlen(from, room);
    if (length >= to_room)
        length = to_room - 1;
    memcpy(to, from, length);
    to[length] = 0;
}

static void tell(struct ndpi_flow_struct *flow, ndpi_protocol found, uint8_t state,
                 struct turboflow_finding *out) {
    memset(out, 0, offsetof(struct turboflow_finding, host) + 1);
    out->ja3[0] = out->ja4[0] = 0;
    out->state = state;
    out->risk = flow->risk;
    out->master = MASTER(found);
    out->application = APPLICATION(found);
    out->category = (uint16_t)found.category;
    uint32_t confidence = (uint32_t)flow->confidence;
    out->confidence = confidence < sizeof confidence_scale ? confidence_scale[confidence] : 0;
    // One member of the flow holds the names for several protocols; a union holds the rest.
    if (is_one_of(&found, NDPI_PROTOCOL_TLS) || is_one_of(&found, NDPI_PROTOCOL_QUIC) ||
        is_one_of(&found, NDPI_PROTOCOL_DTLS)) {
        out->host_kind = TLS_SERVER;
#ifdef HAS_JA3
        copy(out->ja3, sizeof out->ja3, flow->protos.tls_quic.ja3_client,
             sizeof flow->protos.tls_quic.ja3_client);
#endif
#ifdef HAS_JA4
        copy(out->ja4, sizeof out->ja4, flow->protos.tls_quic.ja4_client,
             sizeof flow->protos.tls_quic.ja4_client);
#endif
    } else if (is_one_of(&found, NDPI_PROTOCOL_DNS) || is_one_of(&found, NDPI_PROTOCOL_MDNS) ||
               is_one_of(&found, NDPI_PROTOCOL_LLMNR)) {
        out->host_kind = DNS_QUERY;
    } else if (is_one_of(&found, NDPI_PROTOCOL_HTTP) ||
               is_one_of(&found, NDPI_PROTOCOL_HTTP_CONNECT) ||
               is_one_of(&found, NDPI_PROTOCOL_HTTP_PROXY)) {
        out->host_kind = HTTP_HOST;
    }
    if (out->host_kind != NO_HOST)
        copy(out->host, sizeof out->host, (const char *)flow->host_server_name,
             sizeof flow->host_server_name);
}

void turboflow_ndpi_packet(struct ndpi_detection_module_struct *module,
                           struct ndpi_flow_struct *flow, const uint8_t *datagram, uint16_t length,
                           uint64_t time_ms, struct turboflow_finding *out) {
#ifdef HAS_INPUT_INFO
    ndpi_protocol found =
        ndpi_detection_process_packet(module, flow, datagram, length, time_ms, NULL);
#else
    ndpi_protocol found = ndpi_detection_process_packet(module, flow, datagram, length, time_ms);
#endif
    uint8_t state = UNDECIDED;
    if (APPLICATION(found) != NDPI_PROTOCOL_UNKNOWN || MASTER(found) != NDPI_PROTOCOL_UNKNOWN)
        state = KNOWN;
#ifdef HAS_STATE
    if (found.state >= NDPI_STATE_MONITORING)
        state = COMPLETE;
#endif
#ifdef HAS_EXTRA_DISSECTION
    if (state == KNOWN && !ndpi_extra_dissection_possible(module, flow))
        state = COMPLETE;
#endif
    tell(flow, found, state, out);
}

static ndpi_protocol give_up(struct ndpi_detection_module_struct *module,
                             struct ndpi_flow_struct *flow) {
#if defined(HAS_GUESS_CHOICE)
    u_int8_t guessed = 0;
    return ndpi_detection_giveup(module, flow, 1, &guessed);
#elif defined(HAS_GUESS_REPORT)
    u_int8_t guessed = 0;
    return ndpi_detection_giveup(module, flow, &guessed);
#else
    return ndpi_detection_giveup(module, flow);
#endif
}

// What the library would answer if no packet followed. Giving up changes a flow permanently, so
// this gives up a copy. The copy shares what the flow's pointers refer to, which giving up does not
// free; giving up may add texts of risks, which belong to the copy alone.
void turboflow_ndpi_guess(struct ndpi_detection_module_struct *module,
                          const struct ndpi_flow_struct *flow, struct turboflow_finding *out) {
    struct ndpi_flow_struct copied = *flow;
    ndpi_protocol found = give_up(module, &copied);
    tell(&copied, found, UNDECIDED, out);
#ifdef HAS_RISK_TEXTS
    for (unsigned i = flow->num_risk_infos; i < copied.num_risk_infos; i++)
        ndpi_free(copied.risk_infos[i].info);
#endif
}

// The final answer about a flow, which the caller frees afterwards.
void turboflow_ndpi_give_up(struct ndpi_detection_module_struct *module,
                            struct ndpi_flow_struct *flow, struct turboflow_finding *out) {
    tell(flow, give_up(module, flow), COMPLETE, out);
}

const char *turboflow_ndpi_version(void) {
    return ndpi_revision();
}

uint32_t turboflow_ndpi_applications(struct ndpi_detection_module_struct *module) {
#ifdef HAS_NUM_PROTOCOLS
    return ndpi_get_num_protocols(module);
#else
    return ndpi_get_num_supported_protocols(module);
#endif
}

const char *turboflow_ndpi_application(struct ndpi_detection_module_struct *module, uint16_t number,
                                       uint16_t *category) {
    ndpi_protocol found;
    memset(&found, 0, sizeof found);
    APPLICATION(found) = number;
#ifdef HAS_CATEGORY_OF_RESULT
    *category = (uint16_t)ndpi_get_proto_category(module, found);
#else
    *category = (uint16_t)ndpi_get_proto_category(module, found.proto);
#endif
    return ndpi_get_proto_name(module, number);
}

const char *turboflow_ndpi_category(struct ndpi_detection_module_struct *module, uint16_t number) {
    return number < NDPI_PROTOCOL_NUM_CATEGORIES
               ? ndpi_category_get_name(module, (ndpi_protocol_category_t)number)
               : NULL;
}

const char *turboflow_ndpi_risk(uint8_t number) {
    return number < NDPI_MAX_RISK ? ndpi_risk2str((ndpi_risk_enum)number) : NULL;
}

const char *turboflow_ndpi_confidence(uint8_t number) {
    return number < NDPI_CONFIDENCE_MAX ? ndpi_confidence_get_name((ndpi_confidence_t)number) : NULL;
}
