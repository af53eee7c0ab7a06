import { fast } from './fast.ts'
import { fastStores } from './fast-stores.ts'
import { guard } from './guard.ts'
import { ordering } from './ordering.ts'
import { orderingParts } from './ordering-parts.ts'
import { requests } from './requests.ts'
import { accessToRequests } from './requests-access.ts'
import { answersToRequests } from './requests-answers.ts'
import { requestsOfServices } from './requests-service.ts'
import type { Row } from './row.ts'
import { runs } from './runs.ts'
import { saga } from './saga.ts'

/** The mission, line by line. */
export const rows: readonly Row[] = [
  ...guard,
  ...orderingParts,
  ...ordering,
  ...saga,
  ...requests,
  ...answersToRequests,
  ...accessToRequests,
  ...requestsOfServices,
  ...runs,
  ...fast,
  ...fastStores,
]
