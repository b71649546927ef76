/** How calls of a tool are shown: `ToolView` of `dunnock-proto`, where each field is explained. */
export interface ToolView {
  verb: string;
  summary: Piece[];
  change: { sign: string; argument: string }[];
  counted: string;
  nothing: string;
  command: boolean;
  hidden: boolean;
}

export interface Piece {
  before: string;
  arguments: string[];
  form: Form;
  default: string | null;
}

export type Form = 'text' | 'quoted' | 'json' | 'patched_files' | 'step_count';
