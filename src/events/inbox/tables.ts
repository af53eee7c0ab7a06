import type { Migration } from '../../ledger/store/sql.ts'

/** The room under which the tables are listed in `onceonly_migrations`. */
export const INBOX_ROOM = 'inbox'

const failures = (text: string, integer: string) => `CREATE TABLE onceonly_inbox_failures (
  consumer ${text} NOT NULL,
  message ${text} NOT NULL,
  failures integer NOT NULL,
  unfinished integer NOT NULL,
  failure ${text},
  failed_at ${integer},
  retry_at ${integer} NOT NULL,
  expires_at ${integer} NOT NULL,
  PRIMARY KEY (consumer, message)
)`

/** The message is one JSON text, so that it may hold what a column of text cannot. */
const deadLetters = (text: string, integer: string) => `CREATE TABLE onceonly_inbox_dead_letters (
  consumer ${text} NOT NULL,
  letter ${text} NOT NULL,
  message ${text} NOT NULL,
  topic ${text} NOT NULL,
  reason ${text} NOT NULL,
  failure ${text},
  failures integer NOT NULL,
  parked_at ${integer} NOT NULL,
  content ${text} NOT NULL,
  PRIMARY KEY (consumer, letter)
)`

const order = (text: string, integer: string) => `CREATE TABLE onceonly_inbox_order (
  consumer ${text} NOT NULL,
  line ${text} NOT NULL,
  expected ${integer} NOT NULL,
  waiting_since ${integer},
  waiting_lowest ${integer},
  PRIMARY KEY (consumer, line)
)`

const statements = (text: string, integer: string) => [
  failures(text, integer),
  'CREATE INDEX onceonly_inbox_failures_end ON onceonly_inbox_failures (expires_at)',
  deadLetters(text, integer),
  'CREATE INDEX onceonly_inbox_dead_letters_age ON onceonly_inbox_dead_letters (consumer, parked_at, letter)',
  order(text, integer),
]

/** Forward only: append, never change one that was released. */
export const inboxMigrations: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types: { text, integer } }) => statements(text, integer),
    encrypted: {
      onceonly_inbox_failures: { failure: 'secret' },
      onceonly_inbox_dead_letters: { failure: 'secret', content: 'secret' },
    },
  },
  {
    // When a message last checked whether the awaited number has come.
    version: 2,
    oldestCode: 1,
    up: ({ types: { integer } }) => [`ALTER TABLE onceonly_inbox_order ADD COLUMN looked_at ${integer}`],
  },
]
