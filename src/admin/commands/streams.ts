import type { Admin } from '../core/admin.ts'
import { optional, text } from './argument.ts'
import { type Context, read, type StreamRooms } from './command.ts'
import { paging } from './paging.ts'
import { notFound } from './refusal.ts'

export const streamCommands = {
  rooms: read({
    summary: 'rooms of streams: where each region stands, and how far it lags',
    arguments: paging,
    needs: ['streams'],
    path: '/streams',
    async read(context, { limit, cursor = null }) {
      const page = await streamsOf(context).rooms({ limit, cursor })
      // Sessions are known only to the process that serves them.
      return { ...page, regions: context.rooms?.sessions() ?? [] }
    },
  }),
  room: read({
    summary: 'one room and its messages, as a region has them',
    arguments: { room: text('the room'), region: optional(text('the region; the first one when left out')) },
    words: ['room'],
    needs: ['streams', 'rooms'],
    path: '/streams/:room',
    async read(context, args) {
      // Looked up first: reading the history of a room creates the room.
      const room = await streamsOf(context).get(args.room)
      const region = args.region ?? room?.regions[0]?.region ?? ''
      const history = room === null ? null : await roomsOf(context).history(room.room, region)
      if (room === null || history === null) throw notFound(`There is no room ${args.room}.`)
      return { room, region, history, textHidden: false }
    },
    forViewer: (found) => ({
      ...found,
      history: found.history.map((event) => ({ ...event, text: '' })),
      textHidden: true,
    }),
  }),
}

/** Commands are run only where what they need is there. */
function streamsOf({ admin }: Context): NonNullable<Admin['streams']> {
  return admin.streams as NonNullable<Admin['streams']>
}

function roomsOf({ rooms }: Context): StreamRooms {
  return rooms as StreamRooms
}
