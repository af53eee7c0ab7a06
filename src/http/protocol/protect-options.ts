import { kindOf } from '../../ledger/core/option-names.ts'
import { refuseOption, refuseUnknown } from './options.ts'
import type { HttpOptions } from './protect.ts'

/** Every option by its name: the compiler refuses this table when an option is missing in it. */
const protectOptions = {
  ledger: true,
  who: true,
  region: true,
  onError: true,
  profile: true,
  problemBase: true,
  operationsPath: true,
} satisfies Record<keyof HttpOptions<never, never>, true>

/**
 * What `createProtect` is given, checked when the server starts and not with its first request.
 *
 * @param adapters names of options that only the caller has
 * @param caller the function that takes the options, as users call it
 */
export function checkOptions<N, Tx>(
  options: HttpOptions<N, Tx>,
  adapters: readonly string[] = [],
  caller = 'createProtect',
): void {
  if (typeof options !== 'object' || options === null) {
    refuseOption('ledger', `${caller} takes its options as an object, { ledger, who }, not as ${kindOf(options)}.`)
  }
  const { ledger, who } = options
  if (typeof ledger !== 'object' || ledger === null) {
    refuseOption('ledger', `${caller} needs a \`ledger\`: pass createLedger({ store }).`)
  }
  if (typeof ledger.operation !== 'function') {
    const what = 'claims' in ledger ? 'is a store' : 'is not a ledger'
    refuseOption('ledger', `The \`ledger\` of ${caller} ${what}: pass createLedger({ store }).`)
  }
  if (typeof who !== 'function') {
    refuseOption(
      'who',
      `${caller} needs \`who\`: a function that returns { tenant, caller } of the authenticated request, for example (request) => ({ tenant: request.user.orgId, caller: request.user.id }).`,
    )
  }
  refuseUnknown(caller, options, [...Object.keys(protectOptions), ...adapters])
}
