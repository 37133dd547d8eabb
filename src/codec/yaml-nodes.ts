import { Composer, type CST, isScalar, Lexer, type ParsedNode, Parser } from 'yaml'
import { entityTooLarge } from '../api/status.ts'

/**
 * YAML text to the nodes of its one document, with bounds before and around the library that reads
 * it. Left alone the library takes seconds for some texts of a few kilobytes: it goes on after every
 * mistake, and it calls itself for every level.
 */

/** With the bounds below, no text of this length that we could think of takes over 30 ms. */
const LENGTH_MAX = 65_536

/** An event has about 250; the time that the library takes is a matter of these. */
const TOKENS_MAX = 3000

/** Brackets that are open at one place. */
const FLOW_DEPTH_MAX = 100

/** `- - - a: b` opens as many levels as it has marks, on one line. */
const LINE_MARKS_MAX = 100

/** A message of the library may quote what it could not read. */
const MESSAGE_LENGTH_MAX = 200

/** The text is not YAML, or YAML that we do not read. The message is for the client. */
export class YamlSyntaxError extends Error {
  override readonly name = 'YamlSyntaxError'
}

/** Undefined for a text without content. Fails with a YamlSyntaxError, or a StatusError 413. */
export function yamlNodes(text: string): ParsedNode | undefined {
  if (text.length > LENGTH_MAX) throw tooLarge(`${LENGTH_MAX} characters`)
  const tokens = checkedTokens(text)
  const composer = new Composer({
    schema: 'failsafe',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  })
  stopAtFirstError(composer, text)
  const documents: (ParsedNode | null)[] = []
  for (const token of parsed(tokens)) {
    if (token.type === 'error') throw syntaxError(text, token.offset, token.message)
    for (const { contents } of composer.next(token)) documents.push(contents)
  }
  for (const { contents } of composer.end()) documents.push(contents)
  const [document, ...others] = documents
  // Files often end with a separator. A second event would be lost without a word.
  if (!others.every(isNothing)) throw new YamlSyntaxError('yaml: more than one document')
  return document ?? undefined
}

function* parsed(tokens: readonly string[]): Generator<CST.Token> {
  const parser = new Parser()
  for (const token of tokens) yield* parser.next(token)
  yield* parser.end()
}

function isNothing(node: ParsedNode | null): boolean {
  if (node === null) return true
  return isScalar(node) && node.type === 'PLAIN' && ['', '~', 'null'].includes(String(node.value))
}

/** Line of a place in the text, counted from 1. */
export function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1))
    line++
  return line
}

/** Splitting into tokens is cheap, and tells how much work the rest would be. */
function checkedTokens(text: string): readonly string[] {
  const tokens: string[] = []
  let depth = 0
  let marks = 0
  for (const token of lenientLexer().lex(text)) {
    if (tokens.push(token) > TOKENS_MAX) throw tooLarge(`${TOKENS_MAX} tokens`)
    if (token === '[' || token === '{') depth++
    else if (token === ']' || token === '}') depth = Math.max(0, depth - 1)
    else if (depth === 0) marks = marksAfter(marks, token)
    if (depth > FLOW_DEPTH_MAX || marks > LINE_MARKS_MAX) {
      throw new YamlSyntaxError('yaml: exceeded max depth')
    }
  }
  return tokens
}

/** Members of the library's lexer that its types hide; a test fails when they change. */
interface LexerInside {
  /** Columns that a line must be moved in to go on with what is open. */
  indentNext: number
  parseQuotedScalar(): Generator<string, unknown>
  parseFlowCollection(): Generator<string, unknown>
}

/**
 * Kubernetes' tools let the lines of quoted texts and of brackets begin in any column; the library
 * wants them moved in.
 */
function lenientLexer(): Lexer {
  const lexer = new Lexer()
  const inside = lexer as unknown as LexerInside
  for (const name of ['parseQuotedScalar', 'parseFlowCollection'] as const) {
    const parse = inside[name]
    inside[name] = function* (): Generator<string, unknown> {
      const { indentNext } = inside
      inside.indentNext = 0
      const next = yield* parse.call(lexer)
      inside.indentNext = indentNext
      return next
    }
  }
  return lexer
}

function marksAfter(marks: number, token: string): number {
  if (token === '\n' || token === '\r\n') return 0
  return token === '-' || token === '?' || token === ':' ? marks + 1 : marks
}

/** One mistake is enough for a refusal. The member is not in the library's types; a test minds it. */
function stopAtFirstError(composer: Composer, text: string): void {
  let first: YamlSyntaxError | undefined
  const onError = (source: unknown, _code: string, message: string, warning?: boolean): void => {
    if (warning === true) return
    first ??= syntaxError(text, offsetOf(source), message)
    throw first
  }
  Object.assign(composer, { onError })
}

function offsetOf(source: unknown): number {
  if (typeof source === 'number') return source
  if (Array.isArray(source)) return Number(source[0])
  return typeof source === 'object' && source !== null && 'offset' in source
    ? Number(source.offset)
    : 0
}

function syntaxError(text: string, offset: number, message: string): YamlSyntaxError {
  const shown = message.slice(0, MESSAGE_LENGTH_MAX)
  return new YamlSyntaxError(`yaml: line ${lineAt(text, offset)}: ${shown}`)
}

function tooLarge(limit: string): Error {
  return entityTooLarge(`limit is ${limit} of YAML, send JSON for more`, undefined)
}
