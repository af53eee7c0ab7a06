export type ListenerOf<Event> = (event: Event) => void

/** Listeners only watch: what one of them throws changes nothing, and the others hear of the event. */
export interface Listeners<Event> {
  emit(event: Event): void
  /** Answers how to stop listening. */
  on(listener: ListenerOf<Event>): () => void
}

export function createListeners<Event>(first?: ListenerOf<Event>): Listeners<Event> {
  const listeners = new Set(first === undefined ? [] : [first])
  return {
    emit(event) {
      for (const listener of listeners) {
        try {
          listener(event)
        } catch {
          // The listener's own fault.
        }
      }
    },
    on(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
