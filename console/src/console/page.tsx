import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Asked } from '../parts/ask.ts'
import { useScroll } from '../parts/scroll.tsx'
import { Failed, Loading } from '../parts/states.tsx'

interface PageProps {
  readonly title: ComponentChildren
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

export function Page({ title, about, actions, children }: PageProps) {
  return (
    <div class="page">
      <header>
        <h1>{title}</h1>
        {actions === undefined ? null : <div class="end">{actions}</div>}
        {about === undefined ? null : <p>{about}</p>}
      </header>
      {children}
    </div>
  )
}

interface CardBoxProps {
  readonly title?: string
  readonly end?: ComponentChildren
  /** The content brings its own distances: tables and lists do. */
  readonly isFlush?: boolean
  readonly children: ComponentChildren
}

export function CardBox({ title, end, isFlush = false, children }: CardBoxProps) {
  const scroll = useScroll<HTMLElement>()
  return (
    <section class="card" aria-label={title} {...scroll}>
      {title === undefined ? null : (
        <header>
          <h2>{title}</h2>
          {end === undefined ? null : <div class="end">{end}</div>}
        </header>
      )}
      {isFlush ? children : <div class="body">{children}</div>}
    </section>
  )
}

interface LoadedProps<T> {
  readonly asked: Asked<T>
  readonly again: () => void
  readonly children: (value: T) => ComponentChildren
}

/** What was asked, or why it is not there. */
export function Loaded<T>({ asked, again, children }: LoadedProps<T>) {
  switch (asked.kind) {
    case 'loading':
      return <Loading />
    case 'failed':
      return <Failed message={asked.message} retry={again} />
    case 'loaded':
      return <>{children(asked.value)}</>
  }
}

/** Names and values; what is null is left out. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
    </dl>
  )
}

interface Filter {
  readonly name: string
  readonly label: string
  readonly value: string
  /** Choices; without them, anything may be typed. */
  readonly choices?: readonly { readonly value: string; readonly text: string }[]
  readonly type?: 'datetime-local'
}

interface FiltersProps {
  readonly filters: readonly Filter[]
  readonly change: (name: string, value: string) => void
}

/** Pages are drawn again every few seconds: what is being typed stays. */
function TextFilter({ name, value, type, change }: Omit<Filter, 'label' | 'choices'> & Pick<FiltersProps, 'change'>) {
  const [draft, write] = useState(value)
  useEffect(() => write(value), [value])
  return (
    <input
      id={`filter-${name}`}
      {...(type === undefined ? {} : { type })}
      value={draft}
      autocomplete="off"
      spellcheck={false}
      onInput={({ currentTarget }) => write(currentTarget.value)}
      onChange={({ currentTarget }) => change(name, currentTarget.value.trim())}
    />
  )
}

/** Typed filters are taken with Enter or when the field is left, so that no letter asks the server. */
export function Filters({ filters, change }: FiltersProps) {
  return (
    <div class="filters" role="group" aria-label="Filters">
      {filters.map(({ name, label, value, choices, type }) => (
        <div class="field" key={name}>
          <label for={`filter-${name}`}>{label}</label>
          {choices === undefined ? (
            <TextFilter name={name} value={value} {...(type === undefined ? {} : { type })} change={change} />
          ) : (
            <select
              id={`filter-${name}`}
              value={value}
              onChange={({ currentTarget }) => change(name, currentTarget.value)}
            >
              {choices.map((choice) => (
                <option key={choice.value} value={choice.value}>
                  {choice.text}
                </option>
              ))}
            </select>
          )}
        </div>
      ))}
    </div>
  )
}
