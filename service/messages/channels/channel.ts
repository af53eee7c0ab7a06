import type { FieldError } from '../../http/problem.ts'
import type { Attachment } from '../attachments.ts'

export const channelNames = ['local', 'smtp', 'webhook', 'twilio'] as const
export type ChannelName = (typeof channelNames)[number]

/** How many times its time a provider is listened to: a late word resolves an unknown. */
export const LATE_SHARE = 4

/** What a provider is handed. */
export interface Outgoing {
  readonly messageId: string
  /** Equal for every attempt at this message. */
  readonly effectKey: string
  readonly workspaceId: string
  readonly phone: string | null
  readonly email: string | null
  readonly body: string
  /** Of an e-mail that has one of its own. */
  readonly subject: string | null
  readonly attachments: readonly Attachment[]
}

export type Result =
  | { readonly kind: 'sent'; readonly providerMessageId: string }
  /**
   * Refused for good. With `aboutCall` the provider refused the call before it looked at the message: of an earlier call
   * for the same message that proves nothing.
   */
  | { readonly kind: 'failed'; readonly error: string; readonly code?: string; readonly aboutCall?: true }
  /**
   * Proven not to have been taken, and worth another try: when the provider says, or else with back-off. `unreached`: the
   * provider itself saw nothing of it.
   */
  | {
      readonly kind: 'not_now'
      readonly error: string
      readonly code?: string
      readonly retryAfterMs?: number
      readonly unreached?: true
    }
  /** The answer was lost: it may have been sent. */
  | { readonly kind: 'unknown'; readonly error: string; readonly code?: string }

/** A way to deliver. Providers fail by answering a result; what they throw counts as unknown. */
export interface Channel {
  readonly name: ChannelName
  /** True where the same effect key delivers once, so that a lost attempt may be repeated. */
  readonly dedups: boolean
  /** By which name the provider knows the message; null where it gets none. */
  reference(message: Pick<Outgoing, 'messageId' | 'effectKey'>): string | null
  /** Can it deliver to such a recipient at all? */
  reaches(to: { readonly phone: string | null; readonly email: string | null }): boolean
  /** What of a message this channel cannot carry. */
  complaints(message: Pick<Outgoing, 'phone' | 'email' | 'attachments'>): readonly FieldError[]
  send(message: Outgoing, signal: AbortSignal): Promise<Result>
}
