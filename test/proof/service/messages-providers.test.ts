import { checkMatrix, matrix } from '../../support/service/messages/matrix.ts'

checkMatrix('sqlite', matrix)
if (process.env['ONCEONLY_TEST_POSTGRES_URL'] !== undefined) checkMatrix('postgres', matrix)
