import type { JSX } from 'preact'
import { readAbout, writeAbout } from '../model/about.ts'
import { FILTER_LENGTH_MAX } from '../model/query.ts'
import { usePage } from '../parts/page.ts'

/** Opens any object by kind, namespace and name, even one that no longer exists. */
export function ObjectForm(): JSX.Element {
  const { query, change } = usePage()
  const { kind, namespace, name } = readAbout(query.about)
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void => {
    event.preventDefault()
    const values = new FormData(event.currentTarget)
    const value = (field: string): string => String(values.get(field) ?? '').trim()
    change({
      view: 'object',
      about: writeAbout({
        kind: value('kind'),
        namespace: value('namespace'),
        name: value('name'),
        uid: '',
      }),
    })
  }
  return (
    <form class="object-form" onSubmit={submit} aria-label="Open an object">
      <Field name="kind" label="Kind" value={kind} placeholder="Pod" />
      <Field
        name="namespace"
        label="Namespace"
        value={namespace || query.namespace}
        placeholder="none"
        isOptional
      />
      <Field name="name" label="Name" value={name} placeholder="web-0" />
      <button type="submit">Open</button>
    </form>
  )
}

function Field({
  name,
  label,
  value,
  placeholder,
  isOptional = false,
}: {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly placeholder: string
  readonly isOptional?: boolean
}): JSX.Element {
  return (
    <label>
      {label}
      <input
        name={name}
        defaultValue={value}
        placeholder={placeholder}
        required={!isOptional}
        maxLength={FILTER_LENGTH_MAX}
        autoComplete="off"
        spellcheck={false}
      />
    </label>
  )
}
