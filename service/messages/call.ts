import type { Channel, Outgoing, Result } from './channels/channel.ts'

/** What a channel throws instead of answering counts as unknown. */
export async function calling(channel: Channel, message: Outgoing, listenMs: number): Promise<Result> {
  try {
    return await channel.send(message, AbortSignal.timeout(listenMs))
  } catch (error) {
    return { kind: 'unknown', error: error instanceof Error ? error.message : String(error), code: 'channel_threw' }
  }
}

export async function within<T>(work: Promise<T>, ms: number): Promise<T | null> {
  const late = Promise.withResolvers<null>()
  const timer = setTimeout(() => late.resolve(null), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** The code by which operators distinguish failures, whatever their messages. */
export function coded(message: string, code: string | undefined): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code })
}
