import type { FastifyReply, FastifyRequest } from 'fastify'
import { type RunHandle, sendEvents } from 'onceonly/run'
import type { Quotas } from '../workspaces/quotas.ts'

/** What a stream of events is read from. */
export type EventSource = Pick<RunHandle<unknown>, 'eventPage'>

/** The streams of events that this process sends: bounded for each workspace, and ended when the process is. */
export interface EventStreams {
  /** @throws QuotaExceeded where the workspace has too many of them open */
  send(workspaceId: string, request: FastifyRequest, reply: FastifyReply, source: EventSource): void
  stop(): void
}

interface Parts {
  readonly quotas: Pick<Quotas, 'enter'>
  onError(error: unknown): void
}

export function createEventStreams({ quotas, onError }: Parts): EventStreams {
  const open = new Set<FastifyReply['raw']>()
  let stopped = false
  return {
    send(workspaceId, request, reply, source) {
      const place = quotas.enter('streams', workspaceId)
      const { raw: response } = reply
      reply.hijack()
      open.add(response)
      response.once('close', () => {
        open.delete(response)
        place[Symbol.dispose]()
      })
      if (stopped) return void response.destroy()
      // What was set before the answer was taken over: the headers of every response.
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) response.setHeader(name, value)
      }
      sendEvents(source, request.raw, response).catch((error: unknown) => {
        onError(error)
        // The client connects again, behind the last event that it saw.
        response.destroy()
      })
    },
    stop() {
      stopped = true
      for (const response of open) response.end()
    },
  }
}

/** How often it is looked for a change. */
const LOOK_MS = 1_000

/**
 * The events of a run, and whenever it has changed a snapshot of what else there is to see of it. A snapshot has the place of
 * the event before it: a client that was cut off gets the events that it missed, and the newest snapshot.
 */
export function withSnapshots(handle: EventSource, name: string, read: () => Promise<unknown>): EventSource {
  let shown: string | null = null
  return {
    async eventPage({ after = 0, waitMs = 0, signal, ...wanted } = {}) {
      const deadlineMs = performance.now() + waitMs
      const isFirst = shown === null
      for (;;) {
        const leftMs = Math.max(0, deadlineMs - performance.now())
        const page = await handle.eventPage({
          ...wanted,
          after,
          waitMs: Math.min(leftMs, LOOK_MS),
          ...(signal === undefined ? {} : { signal }),
        })
        const { cursor, events, ended } = page
        // A client that has seen everything is to hear so, instead of the last snapshot once more.
        if (isFirst && ended && events.length === 0 && after > 0) return page
        const value = await read()
        const now = JSON.stringify(value)
        const isNew = now !== shown
        shown = now
        const snapshot = { cursor, name, value, at: Date.now() }
        if (isNew) return { ...page, events: [...events, snapshot] }
        if (events.length > 0 || ended || leftMs === 0 || signal?.aborted === true) return page
      }
    },
  }
}
