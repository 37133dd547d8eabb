/** Properties that every match of a selector has, for implementations with indexes. All are optional. */
export interface Requires {
  /** The name of the event itself: within one namespace it needs no search. */
  readonly name?: string | undefined
  readonly regardingUid?: string | undefined
  readonly regarding?:
    | { readonly kind: string; readonly namespace: string; readonly name: string }
    | undefined
  /** The object that `regarding` or `related` refers to. */
  readonly mentions?: Mention | undefined
  readonly kind?: string | undefined
  readonly reason?: string | undefined
  readonly type?: string | undefined
  readonly reportingController?: string | undefined
  /** The reporting controller or, if an event names none, the component of the deprecated source. */
  readonly controller?: string | undefined
  /** Values that no match has. */
  readonly not?: Readonly<Partial<Record<ValueField, string>>> | undefined
  /** Bounds of the time when the event was last seen; `untilMs` is outside. */
  readonly sinceMs?: number | undefined
  readonly untilMs?: number | undefined
  /** Texts that the note or the reason contains, or does not; in lower case. */
  readonly texts?: readonly RequiredText[] | undefined
  /**
   * An event matches exactly when it has what is required here, apart from names and objects, which
   * must not be required then: `matches` need not be called.
   */
  readonly isAll?: boolean | undefined
}

/** A lower-case text that is compared with the note and the reason, both lowered by JavaScript. */
export interface RequiredText {
  readonly text: string
  readonly isIn: boolean
}

/** Whether the fields contain all required texts and no excluded one. */
export function hasTexts(
  texts: readonly RequiredText[],
  fields: { readonly note: string; readonly reason: string },
): boolean {
  const note = fields.note.toLowerCase()
  const reason = fields.reason.toLowerCase()
  return texts.every(({ text, isIn }) => (note.includes(text) || reason.includes(text)) === isIn)
}

/** Fields whose values an index compares exactly. */
export type ValueField = 'kind' | 'reason' | 'type' | 'reportingController' | 'controller'

/** An object by lower-case kind and name, or by uid. */
export type Mention =
  | { readonly kind: string; readonly name: string; readonly uid?: undefined }
  | { readonly uid: string }
