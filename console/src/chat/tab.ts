const place = 'onceonly-chat-tab'

/**
 * The name under which this tab keeps what is pending. A reload finds it again; a duplicated tab, which inherits it,
 * notices that its twin still holds it and takes one of its own.
 */
export async function tabName(): Promise<string> {
  const inherited = sessionStorage.getItem(place)
  if (inherited !== null && (await hold(inherited))) return inherited
  const name = crypto.randomUUID()
  sessionStorage.setItem(place, name)
  await hold(name)
  return name
}

/** Held for as long as the tab lives. */
function hold(name: string): Promise<boolean> {
  // Without a secure origin there are no locks; the server then notices a twin by itself.
  if (!('locks' in navigator)) return Promise.resolve(true)
  return new Promise((resolve) => {
    void navigator.locks.request(`${place}:${name}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null)
      return lock === null ? undefined : new Promise(() => undefined)
    })
  })
}

export interface Seat {
  readonly name: string
  readonly region: string
}

const seatsPlace = 'onceonly-chat-seats'

/** Who sat here before a reload. */
export function keptSeats(): readonly Seat[] {
  try {
    const seats: unknown = JSON.parse(sessionStorage.getItem(seatsPlace) ?? '[]')
    return Array.isArray(seats) ? seats.filter(isSeat) : []
  } catch {
    return []
  }
}

export function keepSeats(seats: readonly Seat[]): void {
  sessionStorage.setItem(seatsPlace, JSON.stringify(seats))
}

function isSeat(seat: unknown): seat is Seat {
  if (typeof seat !== 'object' || seat === null || !('name' in seat) || !('region' in seat)) return false
  return typeof seat.name === 'string' && typeof seat.region === 'string'
}
