import { isOnceError } from '../../ledger/core/errors.ts'
import type { Transactions } from '../../ledger/store/port.ts'
import { applyTo } from '../apply-all.ts'
import type { Case, Subject } from './case.ts'
import { check, same } from './check.ts'
import { claim, kindOf, settle, success } from './requests.ts'

const CALL = { timeoutMs: 10_000, lockMs: 3_000, refuseTwinOf: null }
/** Of a call that cannot be decided, and how much later a busy machine may end it. */
const SHORT_MS = 300
const LATEST_MS = 4_000

function transactionsOf({ store }: Subject): Transactions<unknown> {
  const { transactions } = store
  check(transactions !== undefined, 'this case needs transactions')
  return transactions
}

async function fails(work: Promise<unknown>, text: string): Promise<unknown> {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error(text)
}

/** Records that commit with the user's own writes, or not at all. */
export const transactionCases: readonly Case[] = [
  {
    name: 'a claim and its settle commit together, and roll back together',
    needs: 'transactions',
    async run(subject) {
      const transactions = transactionsOf(subject)
      const { store } = subject
      const work = (key: string, fail: boolean) =>
        transactions.run(async (session) => {
          const { decision } = await session.apply(claim(key))
          check(decision.kind === 'first_attempt', `granted, not ${decision.kind}`)
          same((await session.apply(settle(decision.lease, success('1')))).decision.kind, 'applied', 'settled inside')
          same((await session.apply(claim(key))).decision.kind, 'replay_success', 'seen inside')
          if (fail) throw new Error('undo')
        }, CALL)
      const error = await fails(work('undone', true), 'the error of the work is rethrown')
      check(error instanceof Error && error.message === 'undo', 'unchanged')
      same(await kindOf(store, claim('undone')), 'first_attempt', 'nothing is left')
      await work('done', false)
      same(await kindOf(store, claim('done')), 'replay_success', 'all of it is there')
    },
  },
  {
    name: 'a savepoint undoes its part, and the transaction continues',
    needs: 'transactions',
    async run(subject) {
      const transactions = transactionsOf(subject)
      const { store } = subject
      await transactions.run(async (session) => {
        const outer = await session.apply(claim('outer'))
        await fails(
          session.savepoint(async () => {
            await session.apply(claim('inner'))
            throw new Error('undo')
          }),
          'a savepoint rethrows',
        )
        check(outer.decision.kind === 'first_attempt', 'granted')
        await session.apply(settle(outer.decision.lease))
      }, CALL)
      same(await kindOf(store, claim('outer')), 'replay_success', 'the outer part')
      same(await kindOf(store, claim('inner')), 'first_attempt', 'the inner part')
    },
  },
  {
    name: 'savepoints that overlap undo their own part only',
    needs: 'transactions',
    async run(subject) {
      const transactions = transactionsOf(subject)
      const { store } = subject
      await transactions.run(async (session) => {
        const undone = session.savepoint(async () => {
          await session.apply(claim('undone'))
          throw new Error('undo')
        })
        const kept = session.savepoint(() => session.apply(claim('kept')))
        const beside = session.apply(claim('beside'))
        await fails(undone, 'a savepoint rethrows')
        await Promise.all([kept, beside])
      }, CALL)
      same(await kindOf(store, claim('undone')), 'first_attempt', 'the part that threw')
      same(await kindOf(store, claim('kept')), 'in_progress', 'the part that was opened beside it')
      same(await kindOf(store, claim('beside')), 'in_progress', 'the claim beside both')
    },
  },
  {
    name: 'a twin in another transaction waits and then sees the outcome; many at once have one winner',
    needs: 'transactions',
    async run(subject) {
      const elsewhere = (await subject.another?.()) ?? subject.store
      const all = [transactionsOf(subject), transactionsOf({ ...subject, store: elsewhere })]
      const kinds = await Promise.all(
        Array.from({ length: 8 }, async (_, n) => {
          const transactions = all[n % 2] as Transactions<unknown>
          for (let tries = 0; ; tries++) {
            try {
              return await transactions.run(async (session) => {
                const { decision } = await session.apply(claim('a'))
                if (decision.kind === 'first_attempt') {
                  await new Promise((resolve) => setTimeout(resolve, 20))
                  await session.apply(settle(decision.lease))
                }
                return decision.kind
              }, CALL)
            } catch (error) {
              if (tries === 10 || !isOnceError(error, 'store_busy')) throw error
            }
          }
        }),
      )
      same(kinds.toSorted(), ['first_attempt', ...Array.from({ length: 7 }, () => 'replay_success')], 'one winner')
    },
  },
  {
    name: 'a call that waits for a transaction ends with its own time, and is refused',
    needs: 'transactions',
    async run(subject) {
      const transactions = transactionsOf(subject)
      const { store } = subject
      const claimed = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const late = Promise.withResolvers<void>()
      const holding = transactions.run(async (session) => {
        await session.apply(claim('a'))
        claimed.resolve()
        await over.promise
      }, CALL)
      await Promise.race([claimed.promise, holding])
      const timer = setTimeout(late.resolve, LATEST_MS)
      const answered = applyTo(store, claim('a'), { timeoutMs: SHORT_MS }).then(
        ({ decision }) => decision.kind,
        (error: unknown) => error,
      )
      const answer = await Promise.race([answered, late.promise.then(() => 'no answer in time')])
      clearTimeout(timer)
      over.resolve()
      await holding
      check(isOnceError(answer) && answer.retryable, `refused for now, and not: ${String(answer)}`)
      same(await kindOf(store, claim('a')), 'in_progress', 'the record is the transaction’s')
    },
  },
  {
    name: 'a session is of no use after its end',
    needs: 'transactions',
    async run(subject) {
      const transactions = transactionsOf(subject)
      const session = await transactions.run(async (inside) => inside, CALL)
      await fails(session.apply(claim('late')), 'a session that is over refuses')
      same(await kindOf(subject.store, claim('late')), 'first_attempt', 'and wrote nothing')
    },
  },
]
