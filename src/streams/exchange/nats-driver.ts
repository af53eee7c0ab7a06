/** What is used of `@nats-io/transport-node` and of `@nats-io/jetstream`: the library loads no driver, it is handed one. */

/** A connection of `@nats-io/transport-node`, or of another client of `@nats-io/nats-core`. */
export interface NatsLine {
  readonly info?: { readonly max_payload?: number } | undefined
  publish(subject: string, payload: Uint8Array): void
  request(
    subject: string,
    payload: Uint8Array,
    options: { readonly timeout: number },
  ): Promise<{ readonly data: Uint8Array }>
  subscribe(subject: string, options: NatsEar): { unsubscribe(): void }
  status(): AsyncIterable<{ readonly type: string }>
}

export interface NatsEar {
  readonly queue?: string
  readonly callback: (error: Error | null, message: NatsAsked) => void
}

export interface NatsAsked {
  readonly subject: string
  readonly data: Uint8Array
  respond(payload: Uint8Array): boolean
}

/** What `jetstream(connection)` of `@nats-io/jetstream` gives. */
export interface JetStreamLine {
  publish(subject: string, payload: Uint8Array, options: { readonly timeout: number }): Promise<unknown>
  jetstreamManager(checkApi?: boolean): Promise<JetStreamManager>
  readonly consumers: { get(stream: string, from: JetStreamFrom): Promise<JetStreamReader> }
}

export interface JetStreamManager {
  readonly streams: {
    info(stream: string): Promise<JetStreamInfo>
    add(config: JetStreamConfig): Promise<JetStreamInfo>
    getMessage(stream: string, query: JetStreamQuery): Promise<JetStreamKept | null>
  }
}

export interface JetStreamInfo {
  readonly created: string
  readonly state: { readonly first_seq: number; readonly last_seq: number }
}

/** Times are in nanoseconds, as the server wants them. */
export interface JetStreamConfig {
  readonly name: string
  readonly description: string
  readonly subjects: string[]
  readonly retention: 'limits'
  readonly storage: 'file'
  readonly discard: 'old'
  readonly max_age: number
  readonly max_bytes: number
  readonly max_msgs_per_subject: number
  readonly num_replicas: number
}

/** The last message of a subject, or the first one from a number on. */
export type JetStreamQuery = { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string }

export interface JetStreamKept {
  readonly seq: number
  readonly data: Uint8Array
}

/** An ordered consumer begins here. */
export interface JetStreamFrom {
  opt_start_seq: number
  filter_subjects?: string
}

export interface JetStreamReader {
  consume(options: JetStreamConsume): Promise<JetStreamReading>
  fetch(options: { max_messages: number; expires: number }): Promise<JetStreamMessages>
  delete(): Promise<boolean>
}

export interface JetStreamConsume {
  max_messages: number
  expires: number
  idle_heartbeat: number
  abort_on_missing_resource: boolean
  callback(message: JetStreamMessage): void
}

export interface JetStreamReading {
  close(): Promise<unknown>
  /** With an error, when it was not `close` that ended it. */
  closed(): Promise<unknown>
}

export interface JetStreamMessages extends AsyncIterable<JetStreamMessage> {
  close(): Promise<unknown>
}

export interface JetStreamMessage {
  readonly subject: string
  readonly data: Uint8Array
  readonly info: { readonly streamSequence: number }
}
