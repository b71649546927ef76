/* A ring of bytes between one writer and one reader. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_MIN 16

struct ring {
	unsigned char *bytes;
	size_t size;
	size_t head;
	size_t tail;
	unsigned long dropped;
};

struct ring *ring_new(size_t size)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	if (size < RING_MIN)
		size = RING_MIN;
	ring->bytes = malloc(size);
	if (!ring->bytes) {
		free(ring);
		return NULL;
	}
	ring->size = size;
	return ring;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	free(ring->bytes);
	free(ring);
}

size_t ring_used(const struct ring *ring)
{
	if (ring->head >= ring->tail)
		return ring->head - ring->tail;
	return ring->size - ring->tail + ring->head;
}

static size_t room(const struct ring *ring)
{
	return ring->size - ring_used(ring) - 1;
}

int ring_write(struct ring *ring, const void *data, size_t count)
{
	const unsigned char *from = data;
	size_t first;

	if (count > room(ring)) {
		ring->dropped += count;
		return -ENOBUFS;
	}
	first = ring->size - ring->head;
	if (first > count)
		first = count;
	memcpy(ring->bytes + ring->head, from, first);
	memcpy(ring->bytes, from + first, count - first);
	ring->head = (ring->head + count) % ring->size;
	return 0;
}

size_t ring_read(struct ring *ring, void *data, size_t count)
{
	unsigned char *to = data;
	size_t used = ring_used(ring);
	size_t done = 0;

	if (count > used)
		count = used;
	while (done < count) {
		to[done] = ring->bytes[ring->tail];
		ring->tail = (ring->tail + 1) % ring->size;
		done++;
	}
	return done;
}

void ring_print(const struct ring *ring, FILE *out)
{
	fprintf(out, "ring: %zu of %zu bytes used", ring_used(ring), ring->size);
	if (ring->dropped > 0)
		fprintf(out, ", %lu dropped", ring->dropped);
	fputc('\n', out);
}
