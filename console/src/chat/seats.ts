import { beginningOf } from './cut.ts'
import { NAME_CHARS_MOST } from './said.ts'

export interface Seat {
  readonly name: string
  readonly region: string
}

const key = 'onceonly-chat-seats'

/** The people that the address names, or those of before a reload, or two who are far apart. */
export function firstSeats(regions: readonly string[]): readonly Seat[] {
  const query = new URLSearchParams(location.search)
  const name = beginningOf(query.get('as')?.trim() ?? '', NAME_CHARS_MOST)
  const region = regions.find((each) => each === query.get('region')) ?? regions[0] ?? ''
  if (name !== '') return [{ name, region }]
  const kept = keptSeats().filter((seat) => regions.includes(seat.region))
  if (kept.length > 0) return kept
  return [
    { name: 'Ada', region },
    { name: 'Grace', region: regions[1] ?? region },
  ]
}

function keptSeats(): readonly Seat[] {
  try {
    const seats: unknown = JSON.parse(sessionStorage.getItem(key) ?? '[]')
    return Array.isArray(seats) ? seats.filter(isSeat) : []
  } catch {
    return []
  }
}

export function keepSeats(seats: readonly Seat[]): void {
  sessionStorage.setItem(key, JSON.stringify(seats.map(({ name, region }) => ({ name, region }))))
}

function isSeat(seat: unknown): seat is Seat {
  if (typeof seat !== 'object' || seat === null || !('name' in seat) || !('region' in seat)) return false
  return typeof seat.name === 'string' && typeof seat.region === 'string'
}
