import type { StepContext, Verified } from './step-context.ts'

/** What a provider does with a key that it has seen before, as its documentation says. */
export type Offer =
  /** A second request under the key is answered like the first, within the window. */
  | {
      readonly kind: 'native'
      readonly windowMs: number
      /** Another body under the same key is refused, so that the first one is kept and sent again byte for byte. */
      readonly comparesBody: boolean
      /** A definite failure is answered again under its key: the next attempt needs another one. */
      readonly keepsFailures: boolean
    }
  /** A tag that can be looked up later, by an operator or by `verify`. */
  | { readonly kind: 'correlate' }
  | { readonly kind: 'none' }

/** Where something is sent. It acts under a key; the plan says what, and to whom. */
export interface Channel<P, R> {
  readonly name: string
  readonly offer: Offer
  /** Throw `final(error)` for what will never succeed, `notDone(error)` for what was proven not to be sent. */
  send(plan: P, context: StepContext): Promise<R>
  /** Asks the provider whether something under this key was sent. */
  verify?(plan: P, context: StepContext): Promise<Verified<R>>
}
