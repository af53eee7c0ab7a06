import { type ShivizEvent, toShiViz } from 'onceonly/stream/parts'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { SpaceTime } from '../parts/space-time.tsx'
import { useChanges } from './frames.ts'
import type { History } from './history.ts'
import { colourOf } from './said.ts'

/** More would not be seen at once, and be slow to draw; the log for ShiViz has them all. */
const drawnMost = 300
/** While messages stream in the diagram is not drawn: that takes longer than a frame. */
const drawEveryMs = 300

/** Causality of the messages of all people on this page, live. */
export function Diagram({ history }: { readonly history: History }) {
  useChanges(history.subscribe, drawEveryMs)
  const box = useRef<HTMLDivElement>(null)
  const { events, version } = history
  const drawn = useMemo(() => events.slice(-drawnMost), [version])
  useEffect(() => box.current?.scrollTo({ top: box.current.scrollHeight }), [version])
  return (
    <section class="card diagram" aria-label="Space-time diagram">
      <header>
        <h2>What caused what</h2>
        <button type="button" class="quiet end" onClick={() => save(events)} disabled={events.length === 0}>
          ShiViz log
        </button>
      </header>
      <div class="body" ref={box}>
        {drawn.length === 0 ? (
          <p class="state">Every message becomes a dot. An arrow means: who wrote this had seen that.</p>
        ) : (
          <SpaceTime history={drawn} colour={({ host }) => colourOf(host.replace(/-\d+$/, ''))} />
        )}
      </div>
    </section>
  )
}

/** The same events as a file that the ShiViz viewer opens. */
function save(events: readonly ShivizEvent[]): void {
  const address = URL.createObjectURL(new Blob([toShiViz(events)], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = address
  link.download = 'chat-shiviz.log'
  link.click()
  URL.revokeObjectURL(address)
}
