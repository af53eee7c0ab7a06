import type { ClientLink, ClientTransport, FrameData, LinkEvents } from 'onceonly/stream'

/** The line between a person and their region, which the page can make worse. */
export interface Line extends ClientTransport {
  readonly isSlow: boolean
  /** Whether and until when nothing comes through, by the clock of the page. */
  readonly droppedUntilMs: number | null
  slow(on: boolean): void
  drop(): void
}

/** One way. */
const SLOW_MS = 500
const DROPPED_MS = 30_000

/** A line over another one. Frames keep their order, however slow it is. */
export function createLine(transport: ClientTransport, changed: () => void): Line {
  const open = new Set<ClientLink & { cut(): void }>()
  let isSlow = false
  let droppedUntilMs: number | null = null

  function connect(region: string, events: LinkEvents): ClientLink {
    if (droppedUntilMs !== null) {
      const refused = setTimeout(() => events.closed(null, 'the line is down'), 0)
      return { send: () => undefined, close: () => clearTimeout(refused) }
    }
    const up = createDelay(() => isSlow)
    const down = createDelay(() => isSlow)
    let over = false
    const end = (code: number | null, reason: string) => {
      if (over) return
      over = true
      open.delete(link)
      up.stop()
      down.stop()
      events.closed(code, reason)
    }
    const inner = transport.connect(region, {
      opened: (format) => down.pass(() => over || events.opened(format)),
      received: (data) => down.pass(() => over || events.received(data)),
      closed: (code, reason) => down.pass(() => end(code, reason)),
    })
    const link = {
      send: (data: FrameData) => up.pass(() => inner.send(data)),
      close() {
        inner.close()
        end(null, '')
      },
      cut() {
        inner.close()
        end(null, 'the line is down')
      },
    }
    open.add(link)
    return link
  }

  return {
    connect,
    get isSlow() {
      return isSlow
    },
    get droppedUntilMs() {
      return droppedUntilMs
    },
    slow(on) {
      isSlow = on
      changed()
    },
    drop() {
      if (droppedUntilMs !== null) return
      droppedUntilMs = performance.now() + DROPPED_MS
      // The page shows the seconds that are left.
      const second = setInterval(changed, 1_000)
      setTimeout(() => {
        clearInterval(second)
        droppedUntilMs = null
        changed()
      }, DROPPED_MS)
      for (const link of open) link.cut()
      changed()
    },
  }
}

/** Passes things on after a while, in their order, also when the line becomes quick again. */
function createDelay(isSlow: () => boolean): { pass(act: () => void): void; stop(): void } {
  const waiting = new Set<ReturnType<typeof setTimeout>>()
  let freeAtMs = 0
  return {
    pass(act) {
      const nowMs = performance.now()
      freeAtMs = Math.max(freeAtMs, isSlow() ? nowMs + SLOW_MS : nowMs)
      if (freeAtMs <= nowMs) return act()
      const timer = setTimeout(() => {
        waiting.delete(timer)
        act()
      }, freeAtMs - nowMs)
      waiting.add(timer)
    },
    stop() {
      for (const timer of waiting) clearTimeout(timer)
      waiting.clear()
    },
  }
}
