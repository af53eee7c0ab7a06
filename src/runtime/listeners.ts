export type ListenerOf<Event> = (event: Event) => void

/** Listeners only watch: what one of them throws changes nothing, and the others hear of the event. */
export interface Listeners<Event> {
  emit(event: Event): void
  /** False where an event that is made for `emit` alone would be made for none. */
  readonly isHeard: boolean
  /** Answers how to stop listening. */
  on(listener: ListenerOf<Event>): () => void
}

export function createListeners<Event>(first?: ListenerOf<Event>): Listeners<Event> {
  const listeners = new Set(first === undefined ? [] : [first])
  const all = {
    isHeard: listeners.size > 0,
    emit(event: Event) {
      for (const listener of listeners) {
        try {
          listener(event)
        } catch {
          // The listener's own fault.
        }
      }
    },
    on(listener: ListenerOf<Event>) {
      listeners.add(listener)
      all.isHeard = true
      return () => {
        listeners.delete(listener)
        all.isHeard = listeners.size > 0
      }
    },
  }
  return all
}
