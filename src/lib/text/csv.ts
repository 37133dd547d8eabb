export interface CsvRecord {
  /** The line on which the record begins, counted from 1. */
  readonly line: number
  readonly fields: readonly string[]
}

/** The text is not CSV. Names the line but never quotes it, since it may contain secrets. */
export class CsvError extends Error {
  override readonly name = 'CsvError'
  readonly line: number

  constructor(line: number, message: string) {
    super(message)
    this.line = line
  }
}

/**
 * Reads CSV (RFC 4180): a field in double quotes may contain commas, line ends and doubled quotes.
 * Records may differ in length, empty lines are skipped, and spaces belong to their field. Throws a
 * CsvError at the first syntax error.
 */
export function* csvRecords(text: string): Generator<CsvRecord> {
  const cursor: Cursor = { text, at: 0, line: 1 }
  while (cursor.at < text.length) {
    if (takeLineEnd(cursor)) continue
    const { line } = cursor
    const fields = [takeField(cursor)]
    while (text[cursor.at] === ',') {
      cursor.at++
      fields.push(takeField(cursor))
    }
    takeLineEnd(cursor)
    yield { line, fields }
  }
}

interface Cursor {
  readonly text: string
  at: number
  line: number
}

function takeField(cursor: Cursor): string {
  return cursor.text[cursor.at] === '"' ? takeQuoted(cursor) : takeBare(cursor)
}

function takeBare(cursor: Cursor): string {
  const bare = /[^,"\r\n]*(?:\r(?!\n)[^,"\r\n]*)*/y
  bare.lastIndex = cursor.at
  const field = bare.exec(cursor.text)?.[0] ?? ''
  cursor.at += field.length
  if (cursor.text[cursor.at] === '"') {
    throw new CsvError(cursor.line, 'quote inside an unquoted field: quote the whole field')
  }
  return field
}

function takeQuoted(cursor: Cursor): string {
  const { text } = cursor
  const openedOn = cursor.line
  let field = ''
  let from = cursor.at + 1
  for (;;) {
    const end = text.indexOf('"', from)
    if (end < 0) throw new CsvError(openedOn, 'quoted field is never closed')
    field += text.slice(from, end)
    if (text[end + 1] !== '"') {
      cursor.at = end + 1
      break
    }
    field += '"'
    from = end + 2
  }
  cursor.line += field.split('\n').length - 1
  if (!isFieldEnd(cursor)) throw new CsvError(cursor.line, 'text after a closing quote')
  return field.replaceAll('\r\n', '\n')
}

function isFieldEnd({ text, at }: Cursor): boolean {
  return at === text.length || text[at] === ',' || /^\r?\n/.test(text.slice(at, at + 2))
}

function takeLineEnd(cursor: Cursor): boolean {
  const length = cursor.text.startsWith('\r\n', cursor.at) ? 2 : 1
  if (length === 1 && cursor.text[cursor.at] !== '\n') return false
  cursor.at += length
  cursor.line++
  return true
}
