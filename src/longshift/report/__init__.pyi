from .comparison import (
    Published as Published,
    compare as compare,
    published as published,
)

# Used by the other packages of longshift; not public.
from .drawing import Drawing as Drawing
from .figures import (
    Line as Line,
    NewSite as NewSite,
    SiteDots as SiteDots,
    SplitCounts as SplitCounts,
    line_chart as line_chart,
    rank_diagram as rank_diagram,
    site_dots as site_dots,
    split_bars as split_bars,
    split_panels as split_panels,
)
from .formats import (
    LATEX_PACKAGES as LATEX_PACKAGES,
    as_json as as_json,
    csv_tables as csv_tables,
    escape as escape,
    latex_document as latex_document,
    latex_table as latex_table,
    markdown_table as markdown_table,
    print_report as print_report,
    save_tables as save_tables,
)
from .html_page import (
    Page as Page,
    Section as Section,
    Tile as Tile,
    bar_table as bar_table,
    fact_list as fact_list,
    figure as figure,
    fold as fold,
    join_html as join_html,
    paragraphs as paragraphs,
    run_section as run_section,
    side_by_side as side_by_side,
    warning_list as warning_list,
    write_page as write_page,
)
from .kinds import (
    ReportRuns as ReportRuns,
    average_tables as average_tables,
    build_tables as build_tables,
    cost_tables as cost_tables,
    register_table as register_table,
    table_kinds as table_kinds,
    target_tables as target_tables,
    with_spread_note as with_spread_note,
    worst_tables as worst_tables,
)
from .paper_figures import (
    Absorption as Absorption,
    Misalignment as Misalignment,
    absorption_panels as absorption_panels,
    accuracy_grids as accuracy_grids,
    class_curves as class_curves,
    misalignment_panels as misalignment_panels,
    negative_bars as negative_bars,
    parameter_curves as parameter_curves,
)
from .ranking import Significance as Significance, rank_methods as rank_methods, significance as significance
from .runs import (
    MissingRuns as MissingRuns,
    Record as Record,
    domain_predictions as domain_predictions,
    filter_runs as filter_runs,
    find_missing as find_missing,
    join_runs as join_runs,
    mixed_versions as mixed_versions,
    read_records as read_records,
    run_folders as run_folders,
)
from .sections import (
    class_section as class_section,
    confusion_section as confusion_section,
    report_page as report_page,
)
from .summary_facts import findings as findings, report_facts as report_facts
from .table import (
    Cell as Cell,
    Column as Column,
    Table as Table,
    TableRow as TableRow,
    float_or_none as float_or_none,
    method_rows as method_rows,
    slug as slug,
    with_places as with_places,
)
from .titles import (
    GROUPS as GROUPS,
    RULES as RULES,
    method_title as method_title,
    order_methods as order_methods,
    order_settings as order_settings,
    words as words,
)
from .weak import (
    Captioned as Captioned,
    gallery as gallery,
    mistake_section as mistake_section,
    share_interval as share_interval,
    weak_below as weak_below,
    weak_indices as weak_indices,
)
