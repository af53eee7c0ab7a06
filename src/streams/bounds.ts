import { streamLimits } from './limits.ts'

/** The bounds of streams, any of which a region or a client may be given differently. */
export type StreamBounds = { readonly [bound in keyof typeof streamLimits]: number }

export function streamBounds(given: Partial<StreamBounds> = {}): StreamBounds {
  return { ...streamLimits, ...given }
}
