import type { JSX, Ref } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { FILTER_LENGTH_MAX, type FilterName } from '../../model/query.ts'
import { presetSince, spanOf } from '../../model/range.ts'
import { reachesHistory } from '../../model/server/retention.ts'
import { isolated, visible } from '../../model/visible.ts'
import { usePage } from '../../parts/page.ts'
import { useServerStatus } from '../../parts/server/status.ts'
import type { Suggestions } from './suggestions.ts'

export interface FilterInputProps {
  readonly filter: FilterName
  readonly label: string
  /** Shown instead of the label where the label says too little. */
  readonly placeholder?: string
  /** Whether the filter is applied while the user types, and not only once it is complete. */
  readonly isLive?: boolean
  readonly suggestions?: Suggestions
  readonly inputRef?: Ref<HTMLInputElement>
}

/** Delay after the last keystroke. */
const TYPING_MS = 350

/** One filter: an invitation while it is empty, removable once it is set. */
export function FilterInput(props: FilterInputProps): JSX.Element {
  const { filter, label, placeholder = label, suggestions, inputRef } = props
  const { query } = usePage()
  const { typed, type, apply, begin, undo } = useTyping(props)
  const { values, load, stop } = useSuggestions(filter, suggestions)
  const id = useId()
  const isActive = query[filter] !== ''
  return (
    <span class={isActive ? 'filter filter-active' : 'filter'}>
      <input
        ref={inputRef ?? null}
        aria-label={label}
        placeholder={placeholder}
        title={isActive ? `${label}: ${isolated(query[filter])}` : undefined}
        value={typed}
        list={values.length === 0 ? undefined : id}
        maxLength={FILTER_LENGTH_MAX}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        onFocus={begin}
        onBlur={stop}
        onClick={load}
        onInput={(event) => {
          load()
          type(event.currentTarget.value, values)
        }}
        onChange={apply}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') load()
          if (event.key === 'Enter') apply()
          if (event.key === 'Escape') {
            undo()
            event.currentTarget.blur()
          }
        }}
      />
      {values.length > 0 && (
        <datalist id={id}>
          {values.filter(isPlain).map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      )}
      {isActive && <RemoveButton filter={filter} label={label} />}
    </span>
  )
}

/**
 * Values with invisible parts can only be chosen from an event, where those parts are written out.
 */
function isPlain(value: string): boolean {
  return visible(value) === value
}

function RemoveButton({
  filter,
  label,
}: {
  readonly filter: FilterName
  readonly label: string
}): JSX.Element {
  const { change } = usePage()
  const name = `Remove the filter ${label}`
  return (
    <button
      type="button"
      class="filter-remove"
      aria-label={name}
      title={name}
      onClick={() => change({ [filter]: '' })}
    >
      ×
    </button>
  )
}

interface Suggested {
  readonly values: readonly string[]
  /** Loads the suggestions once, until the input loses the focus. */
  readonly load: () => void
  readonly stop: () => void
}

/**
 * Suggested values. They are requested when the user acts in the input, and not when it gets the
 * focus: the server computes one answer per user at a time, and the events would wait for this one.
 */
function useSuggestions(filter: FilterName, suggestions: Suggestions | undefined): Suggested {
  const { query, nowMs } = usePage()
  const { window } = useServerStatus()
  const [values, setValues] = useState<readonly string[]>([])
  const loading = useRef<AbortController>(undefined)
  const stop = (): void => {
    loading.current?.abort()
    loading.current = undefined
  }
  useEffect(() => stop, [])
  const load = async (): Promise<void> => {
    if (suggestions === undefined || loading.current !== undefined) return
    loading.current = new AbortController()
    const { signal } = loading.current
    const { fromMs } = spanOf(query.range, nowMs)
    // History is not read for suggestions.
    const range = reachesHistory(window, fromMs)
      ? presetSince(window?.history?.untilMs ?? nowMs, nowMs)
      : query.range
    const found = await suggestions.valuesOf(filter, { ...query, range }, signal)
    if (!signal.aborted) setValues(found)
  }
  return { values, load, stop }
}

interface Typing {
  readonly typed: string
  readonly type: (text: string, known: readonly string[]) => void
  readonly apply: () => void
  /** Starts an edit: what follows is one step of the browser's history. */
  readonly begin: () => void
  /** Leaves the filter unchanged. */
  readonly undo: () => void
}

/**
 * The input's text, and when it becomes the filter. A name is applied once it is complete: with
 * Enter, when the input loses the focus, or when it equals a suggestion. Half a name would match
 * nothing.
 */
function useTyping({ filter, isLive = false }: FilterInputProps): Typing {
  const { query, change } = usePage()
  const applied = query[filter]
  const [typed, setTyped] = useState(applied)
  const latest = useRef(typed)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const isStep = useRef(false)
  /** The value that this input has applied itself: the user may have typed more since then. */
  const own = useRef(applied)
  const show = (text: string): void => {
    latest.current = text
    setTyped(text)
  }
  const undo = (): void => {
    clearTimeout(timer.current)
    show(applied)
  }
  useEffect(() => {
    if (applied === own.current) return
    own.current = applied
    undo()
  }, [applied])
  useEffect(() => () => clearTimeout(timer.current), [])
  const apply = (): void => {
    clearTimeout(timer.current)
    const value = latest.current.trim()
    if (value === own.current) return
    own.current = value
    change({ [filter]: value }, { isMinor: isStep.current })
    isStep.current = true
  }
  return {
    typed,
    apply,
    undo,
    begin: () => {
      isStep.current = false
    },
    type: (text, known) => {
      show(text)
      clearTimeout(timer.current)
      if (isLive || text === '' || known.includes(text))
        timer.current = setTimeout(apply, TYPING_MS)
    },
  }
}
