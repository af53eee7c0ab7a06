import { createHash } from 'node:crypto'
import { isStreamName } from 'onceonly/stream/protocol'

/** The regions of the demo: all of them run in this process, each with a log of its own. */
export const regionNames = ['frankfurt', 'virginia', 'saopaulo', 'tokyo', 'sydney'] as const
export type RegionName = (typeof regionNames)[number]

/** Leaves room in a name of streams for the workspace that the room belongs to. */
export const ROOM_CHARS_MOST = 40
/** Each way; a round trip takes twice as long. */
export const DELAY_MS_MOST = 10_000
export const OFFLINE_MS_MOST = 600_000
/** Of one room, the newest: what a diagram can show. */
export const HISTORY_MESSAGES = 500

/** 132 bits of a digest in base64: a second workspace with the same cannot be found. */
const WORKSPACE_CHARS = 22

export function isRegion(value: unknown): value is RegionName {
  return regionNames.some((name) => name === value)
}

export function isRoom(value: unknown): value is string {
  return isStreamName(value) && value.length <= ROOM_CHARS_MOST
}

/** Rooms of different workspaces never meet, whatever they are called. */
export function roomOf(workspaceId: string, room: string): string {
  return `${prefixOf(workspaceId)}${room}`
}

/** What the names of all rooms of a workspace begin with. */
export function prefixOf(workspaceId: string): string {
  const digest = createHash('sha256').update(workspaceId).digest('base64url').slice(0, WORKSPACE_CHARS)
  // Names of streams have no underscore.
  return `w${digest.replaceAll('_', '~')}.`
}
