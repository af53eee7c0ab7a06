import { checkMatrix, matrix } from '../../support/service/messages/matrix.ts'

/** A few cells; the whole matrix is in test/proof. */
const few = [
  ['webhook', 'answers-500'],
  ['twilio', 'cut'],
  ['webhook', 'answers-429'],
  ['smtp', 'cut'],
  ['smtp', 'says-554'],
]

checkMatrix(
  'sqlite',
  matrix.filter(({ channel, behaviour }) => few.some(([name, how]) => name === channel && how === behaviour)),
)
