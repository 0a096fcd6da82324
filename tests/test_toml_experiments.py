"""Tests of experiments that are TOML files: valid keys and refused ones."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sparelane import papers as experiments
from sparelane.papers import registry
from sparelane.papers.engine import panels
from sparelane.papers.engine.base import Claim, Effort, Outcome
from sparelane.papers.engine.cells import Cell, Runs, plan
from sparelane.papers.engine.declared import SHARED, read
from sparelane.papers.engine.rows import Evaluation, Key, Metric, Row
from sparelane.papers.engine.sections import DeclarationError

FCT, REDUCTION = Metric("FCT", "s"), Metric("reduction", "%")
METRICS = {metric.name: metric for metric in (FCT, REDUCTION)}
FOLDER = Path(experiments.__file__).parent

WHOLE = """
kind = "completion"
title = "Load"
source = "NSDI 2014, Fig. 8"
method = "Two loads."
assumptions = ["Nothing."]
full = { seeds = 10, stop_s = 5 }
quick = { seeds = 1, stop_s = 2 }
rows = { scheme = "RC3", metric = "reduction" }
setting = [{ name = "10%", load = 0.1 }, { name = "30%" }]

[[panel]]
rows = { setting = ["10%", "30%"] }
series = [{ name = "RC3", look = "blue", scheme = "RC3" }, { name = "TCP", look = "grey", scheme = "TCP" }]
labels = ["10 %", "30 %"]
axis = "load"
unit = "reduction (%)"

[[printed]]
place = "Fig. 8"
columns = ["setting", { scheme = "TCP", metric = "FCT" }, { metric = "reduction" }]
rows = [["10%", 0.125, 45.56], ["30%", "", 43.54]]

[[reason]]
text = "because"
rows = { setting = ["10%", "30%"], scheme = ["TCP", "RC3"], metric = "FCT" }

[[claim]]
text = "{setting}: {paper:g} %"
less_paper = { setting = ["10%", "30%"] }
full = { about = 0, within = 3 }
quick = { at_least = -8, at_most = 8 }

[[claim]]
text = "More at {setting} than at 30 %"
difference = { setting = ["10%", "30%"] }
full = { at_least = 0 }
"""


def file(folder: Path, text: str) -> Path:
    place = folder / "rc3"
    place.mkdir(exist_ok=True)
    path = place / "load.toml"
    path.write_text(text, encoding="utf-8")
    return path


def cut(setting: str) -> Key:
    return Key(setting, REDUCTION, "RC3")


def test_a_file_has_the_papers_numbers_reasons_and_claims_by_the_keys_of_rows(tmp_path: Path) -> None:
    found = read(file(tmp_path, WHOLE), METRICS)
    assert found.id == "rc3/load"
    assert (found.full.seeds, found.quick.stop_s) == (10, 2.0)
    assert found.printed == {Key("10%", FCT, "TCP"): 0.125, cut("10%"): 45.56, cut("30%"): 43.54}
    assert found.reasons == {
        Key(setting, FCT, scheme): "because" for setting in ("10%", "30%") for scheme in ("TCP", "RC3")
    }
    rows = Evaluation((Row(cut("10%"), 45.56, 46.0), Row(cut("30%"), 43.54, 40.0)))
    verdicts = [claim.check(found.full, rows) for claim in found.claims]
    assert [verdict.text for verdict in verdicts] == ["10%: 45.56 %", "30%: 43.54 %", "More at 10% than at 30 %"]
    assert [verdict.value for verdict in verdicts] == pytest.approx([0.44, -3.54, 6.0])
    assert [verdict.holds for verdict in verdicts] == [True, False, True]


def test_a_panel_draws_the_rows_of_its_series(tmp_path: Path) -> None:
    draw = panels.read(read(file(tmp_path, WHOLE), METRICS))
    rows = tuple(
        Row(replace(cut(setting), scheme=scheme), None, value)
        for setting, scheme, value in (
            ("10%", "RC3", 4.0),
            ("30%", "RC3", 3.0),
            ("10%", "TCP", 2.0),
            ("30%", "TCP", 1.0),
        )
    )
    [axes] = draw(Evaluation(rows)).axes
    plain = panels.read(read(file(tmp_path, WHOLE.replace('labels = ["10 %", "30 %"]', "")), METRICS))
    assert [text.get_text() for text in plain(Evaluation(rows)).axes[0].get_xticklabels()] == ["10%", "30%"]
    assert [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)] == [4.0, 3.0, 2.0, 1.0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["10 %", "30 %"]


def test_a_table_of_looks_makes_a_series_for_each_name(tmp_path: Path) -> None:
    listed = (
        'series = [{ name = "RC3", look = "blue", scheme = "RC3" }, { name = "TCP", look = "grey", scheme = "TCP" }]'
    )
    assert listed in WHOLE
    rows = tuple(
        Row(replace(cut(setting), scheme=scheme), None, value)
        for setting, values in (("10%", (4.0, 2.0)), ("30%", (3.0, 1.0)))
        for scheme, value in zip(("RC3", "TCP"), values, strict=True)
    )
    looks = 'series.scheme = { RC3 = "blue", "$other" = "grey" }'
    drawn = []
    for series in (listed, looks):
        text = WHOLE.replace(listed, series).replace("[[panel]]", '[values]\nother = "TCP"\n\n[[panel]]')
        [axes] = panels.read(read(file(tmp_path, text), METRICS))(Evaluation(rows)).axes
        bars = [(bar.get_height(), bar.get_facecolor()) for bar in axes.patches if isinstance(bar, Rectangle)]
        drawn.append((bars, axes.get_legend_handles_labels()[1]))
    assert drawn[0] == drawn[1]
    assert drawn[0][1] == ["RC3", "TCP"]


def test_a_vertical_axis_has_the_metrics_label_of_the_file_or_its_name_and_unit(tmp_path: Path) -> None:
    rows = tuple(
        Row(replace(cut(setting), scheme=one), None, 1.0) for setting in ("10%", "30%") for one in ("RC3", "TCP")
    )
    plain = WHOLE.replace('unit = "reduction (%)"\n', "")
    averaged = plain.replace('"reduction" }\nsetting', '"reduction", average = "mean" }\nsetting')
    labelled = averaged.replace("rows = {", 'units = { reduction = "gain, {average}" }\nrows = {', 1)
    for text, label, average in ((plain, "reduction (%)", ""), (labelled, "gain, mean", "mean")):
        draw = panels.read(read(file(tmp_path, text), METRICS))
        keyed = tuple(replace(row, key=replace(row.key, average=average)) for row in rows)
        assert draw(Evaluation(keyed)).axes[0].get_ylabel() == label


def test_points_have_the_papers_numbers_as_crosses_or_as_a_line_and_rows_without_a_variant_for_missing_ones(
    tmp_path: Path,
) -> None:
    points = 'at = [1, 3]\nkind = "points"\nlimits = [0]\nrotation = 30\nlog = "x"\nlabels = ["10 %", "30 %"]'
    text = WHOLE.replace('labels = ["10 %", "30 %"]', points).replace(
        'scheme = "TCP" }]', 'scheme = "TCP", variant = "x" }]'
    )
    draw = panels.read(read(file(tmp_path, text), METRICS))
    rc3 = [Row(cut(setting), 2.0, value) for setting, value in (("10%", 4.0), ("30%", 3.0))]
    tcp = [Row(replace(cut("10%"), scheme="TCP"), 5.0, 6.0)]
    [axes] = draw(Evaluation((*rc3, *tcp))).axes
    lines = {str(line.get_label()): np.column_stack(line.get_data()).tolist() for line in axes.get_lines()}
    assert lines["paper, RC3"] == [[0.0, 2.0], [1.0, 2.0]]
    assert lines["paper"] == [[1.0, 5.0]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["10 %", "30 %"]
    assert axes.get_ylim()[0] == 0.0
    legend = [container.get_label() for container in axes.containers]
    assert legend == ["RC3", "TCP"]


def test_bars_leave_out_the_groups_that_a_quick_effort_lacks(tmp_path: Path) -> None:
    draw = panels.read(read(file(tmp_path, WHOLE), METRICS))
    rows = tuple(Row(replace(cut("30%"), scheme=scheme), None, 2.0) for scheme in ("RC3", "TCP"))
    [axes] = draw(Evaluation(rows)).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["30 %"]


def test_a_panel_draws_rows_at_numbers_and_curves_by_name(tmp_path: Path) -> None:
    at = 'kind = "KIND"\nlog = "x"\nat = [0.1, 0.3]\nlabels = ["$10^{-1}$", "30 %"]'
    text = WHOLE.replace('labels = ["10 %", "30 %"]', at)
    rows = tuple(
        Row(replace(cut(setting), scheme=scheme), 4.0, value)
        for setting, value in (("10%", 2.0), ("30%", 8.0))
        for scheme in ("RC3", "TCP")
    )
    for kind, limits in (("filled points", (2 / 1.5, 12.0)), ("marks", (1.1, 8.9))):
        draw = panels.read(read(file(tmp_path, text.replace("KIND", kind)), METRICS))
        [axes] = draw(Evaluation(rows)).axes
        assert axes.get_ylim() == pytest.approx(limits)
        assert [text.get_text() for text in axes.get_xticklabels()] == ["$10^{-1}$", "30 %"]
    draw = panels.read(read(file(tmp_path, text.replace("KIND", "curves")), METRICS))
    curve = pl.DataFrame({"delay_ms": [1.0, 2.0], "share": [0.5, 1.0]})
    [axes] = draw(Evaluation((), curves={"RC3": curve, "TCP": curve})).axes
    assert [np.asarray(line.get_xdata()).tolist() for line in axes.lines] == [[1.0, 2.0], [1.0, 2.0]]


def test_a_claim_about_groups_of_rows_has_a_table_for_each(tmp_path: Path) -> None:
    text = """
[[claim]]
text = "Times rise"
least_falling = { each = { one = ["TCP", "RC3"] }, setting = ["30%", "10%"], scheme = "{one}", metric = "FCT" }
full = { at_least = 1 }
"""
    claim = read(file(tmp_path, WHOLE + text), METRICS).claims[-1]
    numbers = {("10%", "TCP"): 1.0, ("30%", "TCP"): 3.0, ("10%", "RC3"): 1.0, ("30%", "RC3"): 2.0}
    rows = tuple(Row(Key(setting, FCT, scheme), None, value) for (setting, scheme), value in numbers.items())
    assert claim.value(Evaluation(rows)) == 2.0


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ('labels = ["10 %", "30 %"]', 'labels = ["10 %"]', '"rows" selects 2 rows for 1 positions'),
        ('look = "blue"', 'look = "red"', '"look" is "red"; allowed: grey, blue'),
        ('scheme = "TCP" }]', 'sceme = "TCP" }]', '"sceme"'),
        ('axis = "load"\nunit', "unit", '"axis" is missing'),
    ],
)
def test_a_mistake_in_a_panel_is_an_error(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    assert right in WHOLE
    with pytest.raises(DeclarationError, match=re.escape(problem)):
        panels.read(read(file(tmp_path, WHOLE.replace(right, wrong)), METRICS))


def test_bounds_are_read_as_written(tmp_path: Path) -> None:
    first, _, last = read(file(tmp_path, WHOLE), METRICS).claims
    assert (first.full, first.quick) == ((-3.0, 3.0), (-8.0, 8.0))
    assert (last.full, last.quick) == ((0.0, math.inf), None)


def test_a_template_is_filled_with_each_combination(tmp_path: Path) -> None:
    template = """
[[claim]]
each = { load = ["10", "30"], name = ["TCP", "RC3"] }
text = "{name} at {load} %: {setting}"
ours = { setting = "{load}%", scheme = "{name}", metric = "FCT" }
full = { at_most = 1 }
"""
    claims = read(file(tmp_path, WHOLE + template), METRICS).claims[3:]
    assert [claim.text for claim in claims] == [
        f"{name} at {load} %: {load}%" for load in ("10", "30") for name in ("TCP", "RC3")
    ]


def test_a_band_may_have_another_bound_or_tolerance_for_quick_efforts(tmp_path: Path) -> None:
    bands = ("{ at_least = 30 }", "{ at_least = 30, quick = 25 }", "{ about = 30, within = 3, quick = 8 }")
    claims = (f'[[claim]]\ntext = "A"\nours = {{ setting = "10%" }}\nband = {band}\n' for band in bands)
    text = WHOLE.replace("quick = { seeds = 1, stop_s = 2 }\n", "") + "".join(claims)
    found = read(file(tmp_path, text), METRICS)
    assert found.quick == Effort("quick", 10, 5)
    assert [(claim.full, claim.quick) for claim in found.claims[-3:]] == [
        ((30, math.inf), (30, math.inf)),
        ((30, math.inf), (25, math.inf)),
        ((27, 33), (22, 38)),
    ]


def test_values_that_belong_together_fill_a_template_together(tmp_path: Path) -> None:
    template = """
[[claim]]
each = { run = [{ load = "10%", schemes = ["TCP", "RC3"], most = 1 }, { load = "30%", schemes = "TCP", most = 2 }] }
text = "{scheme} at {load}"
ours = { setting = "{load}", scheme = ["{schemes}"], metric = "FCT" }
band = { at_most = "{most}" }
"""
    claims = read(file(tmp_path, WHOLE + template), METRICS).claims[3:]
    assert [claim.text for claim in claims] == ["TCP at 10%", "RC3 at 10%", "TCP at 30%"]
    assert [claim.full for claim in claims] == [claim.quick for claim in claims]
    assert [claim.full[1] for claim in claims] == [1, 1, 2]


def test_a_value_with_a_name_stands_for_it_in_the_file_and_in_those_of_its_folder(tmp_path: Path) -> None:
    path = file(tmp_path, WHOLE.replace('setting = ["10%", "30%"]', 'setting = "$loads"'))
    path.with_name(SHARED).write_text('[values]\nlow = "10%"\nloads = ["$low", "30%"]\n', encoding="utf-8")
    assert [claim.text for claim in read(path, METRICS).claims][:2] == ["10%: 45.56 %", "30%: 43.54 %"]
    path.write_text(path.read_text(encoding="utf-8") + '[values]\nlow = "30%"\n', encoding="utf-8")
    assert [claim.text for claim in read(path, METRICS).claims][:2] == ["30%: 43.54 %", "30%: 43.54 %"]


def test_claims_and_reasons_are_shared_by_name(tmp_path: Path) -> None:
    path = file(tmp_path, WHOLE.replace("assumptions =", 'shared = ["loss"]\nassumptions ='))
    path.with_name(SHARED).write_text(
        """
[[reason.loss]]
text = "drops"
rows = { setting = "50%" }
[[claim.loss]]
each = { scheme = ["TCP", "RC3"] }
text = "Times of {scheme} in runs of {stop_s} s"
ours = { setting = "50%", scheme = "{scheme}", metric = "FCT" }
full = { at_most = 1 }
""",
        encoding="utf-8",
    )
    found = read(path, METRICS)
    assert found.reasons[cut("50%")] == "drops"
    assert [claim.text for claim in found.claims][:2] == [f"Times of {one} in runs of 5 s" for one in ("TCP", "RC3")]


def test_a_file_gets_keys_from_the_tables_that_it_names_unless_it_has_them(tmp_path: Path) -> None:
    lacking = WHOLE.replace("assumptions =", 'shared = ["network"]\nassumptions =').replace(
        "full = { seeds = 10, stop_s = 5 }\n", ""
    )
    path = file(tmp_path, lacking)
    keys = '[keys.network]\nfull = { seeds = 3, stop_s = 4 }\nquick = { seeds = 2 }\n[keys.other]\ntitle = "Other"\n'
    path.with_name(SHARED).write_text(keys, encoding="utf-8")
    found = read(path, METRICS)
    assert found.full == Effort("full", 3, 4)
    assert found.quick == Effort("quick", 1, 2)
    assert found.title == "Load"


@pytest.mark.parametrize(
    ("shared", "problem"),
    [
        ("keys = 3\n", 'shared.toml: "keys" is 3; allowed: a table'),
        ("[keys]\nnetwork = 3\n", 'shared.toml, keys: "network" is 3; allowed: a table'),
        ("values = 3\n", 'shared.toml: "values" is 3; allowed: a table'),
    ],
)
def test_a_shared_table_of_another_type_is_an_error(tmp_path: Path, shared: str, problem: str) -> None:
    path = file(tmp_path, WHOLE.replace("assumptions =", 'shared = ["network"]\nassumptions ='))
    path.with_name(SHARED).write_text(shared, encoding="utf-8")
    with pytest.raises(DeclarationError, match=re.escape(problem)):
        read(path, METRICS)


def test_a_list_of_numbers_is_for_the_rows_of_its_column(tmp_path: Path) -> None:
    table = """
[[printed]]
place = "Fig. 9"
scheme = ["TCP", "RC3"]
columns = [{ setting = ["50%", "70%"] }]
rows = [[[1, 2, 3, 4]]]
"""
    printed = read(file(tmp_path, WHOLE + table), METRICS).printed
    rows = [replace(cut(setting), scheme=scheme) for setting in ("50%", "70%") for scheme in ("TCP", "RC3")]
    assert [printed[row] for row in rows] == [1, 2, 3, 4]


def test_a_claim_has_the_reason_of_its_row_by_default(tmp_path: Path) -> None:
    text = """
[[claim]]
text = "Short flows"
ours = { setting = "10%", scheme = "TCP", metric = "FCT" }
full = { at_most = 1 }
"""
    found = read(file(tmp_path, WHOLE + text), METRICS)
    assert [claim.reason for claim in found.claims] == ["not explained"] * 3 + ["because"]


def test_a_file_becomes_an_experiment_of_its_kind(tmp_path: Path) -> None:
    experiment = experiments.read(file(tmp_path, WHOLE))
    assert [run.settings for run in experiment.plan(experiment.quick)] == [
        (f"workload.load={load:g}", f"workload.scheme={scheme}", "duration=2s")
        for load in (0.1, 0.3)
        for scheme in ("tcp", "rc3")
    ]


def test_a_claim_may_state_the_band_of_its_rows(tmp_path: Path) -> None:
    text = WHOLE.replace("difference = ", "ours = ").replace('text = "More at', 'stated = "abstract"\ntext = "More at')
    found = read(file(tmp_path, text), METRICS)
    assert found.stated == {cut(setting): (0.0, math.inf) for setting in ("10%", "30%")}
    assert [claim.full for claim in found.claims[2:]] == [(0.0, math.inf)] * 2


MISTAKES = [
    ('kind = "completion"', 'kind = "nonsense"', '"kind"'),
    ('kind = "completion"', 'kind = "analytic"', '"kind"'),
    ('kind = "completion"', "", '"kind" is "load"; no such module is in the folder'),
    ('title = "Load"', "", '"title" is missing'),
    ('title = "Load"', "title = 3", '"title" is 3; allowed: a text'),
    ('title = "Load"', 'title = "Load"\ntitel = "Load"', '"titel"'),
    ('assumptions = ["Nothing."]', "assumptions = [1]", '"assumptions" is [1]; allowed: a list of only texts'),
    ('assumptions = ["Nothing."]', 'shared = ["elsewhere"]', '"shared" has "elsewhere"'),
    ("[[panel]]", '[metrics]\n"%" = 3\n\n[[panel]]', '"%" is 3; allowed: a text'),
    ('title = "Load"', 'title = "$load"', "'$load' is not in [values]"),
    ('["10%", 0.125, 45.56]', '["10%", [0.125, 0.135], 45.56]', '"rows" has'),
    ('less_paper = { setting = ["10%", "30%"] }', 'value = "mean"', '"value" is "mean"; allowed: '),
    ("[[reason]]", '[[stated]]\nplace = "abstract"\nrows = { setting = "10%" }\n\n[[reason]]', '"band" is missing'),
    ("seeds = 10", "seeds = 1.5", '"seeds" is 1.5; allowed: a whole number'),
    ("seeds = 10", "seeds = true", '"seeds" is True; allowed: a whole number'),
    ("seeds = 10, ", "", '"seeds" is missing'),
    ("stop_s = 5", 'stop_s = "5"', "\"stop_s\" is '5'; allowed: a number"),
    ("stop_s = 5", "stops_s = 5", '"stops_s"'),
    ('metric = "reduction" }\nsetting', 'metric = "gain" }\nsetting', '"metric" is "gain"; allowed: FCT, reduction'),
    ("load = 0.1", 'load = "a tenth"', "\"load\" is 'a tenth'; allowed: a number"),
    ("load = 0.1", "lode = 0.1", '"lode"'),
    ("load = 0.1", 'like = "nothing"', '"like" is "nothing"'),
    ("load = 0.1", 'longer = ["RCP"]', '"longer" has "RCP"'),
    ("load = 0.1", 'rule = "all flows"', '"rule" is "all flows"; allowed: both by the end'),
    ('axis = "load"', "", '"axis" is missing'),
    ('"30 %"]', '"30 %", "50 %"]', '"rows" selects 2 rows for 3 positions'),
    ('axis = "load"', 'axis = "load"\nkind = "pie"', '"kind" is "pie"'),
    ('place = "Fig. 8"', "", '"place" is missing'),
    ('["10%", 0.125, 45.56]', '["10%", 0.125]', '"rows" has'),
    ('["10%", 0.125, 45.56]', '["10%", "x", 45.56]', "which must be a number or empty"),
    ('["10%", 0.125, 45.56]', '["11%", 0.125, 45.56]', '"printed" has the setting "11%"'),
    ('columns = ["setting"', 'columns = ["sitting"', '"sitting"'),
    ('columns = ["setting"', "columns = [3", '"columns" has an entry that is neither'),
    ('text = "because"', "", '"text" is missing'),
    ('rows = { setting = ["10%"', 'rows = { sitting = ["10%"', '"sitting"'),
    ("less_paper", "less", '"claim" has no value; allowed: ours'),
    ('less_paper = { setting = ["10%", "30%"] }', 'ratio = { setting = "10%" }', '"ratio" names 1 and 0 rows'),
    ('less_paper = { setting = ["10%", "30%"] }', "ours = []", '"ours" names no rows'),
    ('["30%", "", 43.54]', '["10%", "", 43.54]', '"rows" has a second number for "10%: RC3 reduction"'),
    ("full = { about = 0, within = 3 }", "", '"full" is missing'),
    ("full = { about = 0, within = 3 }", "full = {}", '"full" has no bound'),
    ("about = 0, within = 3", "about = 0", '"within" is missing'),
    ("full = { about = 0, within = 3 }", "band = { at_least = 0, at_most = 1, quick = 2 }", '"band" has two bounds'),
    ("at_least = -8, at_most = 8", "at_least = 8, at_most = -8", "wrong order"),
    ("at_least = -8, at_most = 8", "at_least = -8, at_last = 8", '"at_last"'),
    ("{paper:g} %", "{papers} %", '"text" may have only setting, metric'),
    ("[[claim]]", "[[claim", "cannot read"),
    ("difference = ", 'stated = "abstract"\ndifference = ', '"stated" needs "ours"'),
]


@pytest.mark.parametrize(("right", "wrong", "problem"), MISTAKES)
def test_a_mistake_in_a_file_is_an_error_that_names_the_file_and_the_key(
    tmp_path: Path, right: str, wrong: str, problem: str
) -> None:
    assert right in WHOLE
    with pytest.raises(DeclarationError, match=re.escape(problem)) as caught:
        experiments.read(file(tmp_path, WHOLE.replace(right, wrong, 1)))
    assert "rc3/load.toml" in str(caught.value)


FILES = sorted(path for path in FOLDER.glob("*/*.toml") if path.name != SHARED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_defines_the_experiment_with_its_name(path: Path) -> None:
    experiment = registry()[f"{path.parent.name}/{path.stem}"]
    assert experiment.title
    assert all(isinstance(claim, Claim) for claim in experiment.claims)


def test_shared_texts_come_first_and_know_the_length_of_a_run(tmp_path: Path) -> None:
    path = file(tmp_path, WHOLE.replace("assumptions =", 'shared = ["network"]\nassumptions ='))
    path.with_name(SHARED).write_text(
        '[assumptions]\nnetwork = "A run lasts {stop_s} s."\n[fitted]\nnetwork = ["The buffer."]\n', encoding="utf-8"
    )
    found = read(path, METRICS)
    assert found.assumptions == ("A run lasts 5 s.", "Nothing.")
    assert found.fitted == ("The buffer.",)


def test_a_row_gets_the_papers_number_or_words_by_its_key(tmp_path: Path) -> None:
    stated = '[[stated]]\nplace = "abstract"\nrows = { setting = "50%" }\nband = { at_most = 56 }\n\n[[reason]]'
    found = read(file(tmp_path, WHOLE.replace("[[reason]]", stated, 1)), METRICS)
    rows = (Row(cut("10%"), None, 46.0), Row(cut("50%"), None, 40.0), Row(cut("70%"), None, 1.0))
    done = found.experiment(lambda effort: (), lambda effort, outcomes: Evaluation(rows), lambda found: Figure())
    judged = done.judge(found.full, {}).rows
    assert [(row.paper, row.stated) for row in judged] == [(45.56, None), (None, (-math.inf, 56.0)), (None, None)]
    assert found.paper(replace(cut("10%"), variant="longer")) == 45.56


def test_a_claim_takes_its_value_from_a_function_of_the_kind(tmp_path: Path) -> None:
    text = WHOLE.replace('less_paper = { setting = ["10%", "30%"] }', 'value = "sum"\nof = ["10%", 2]')
    text = text.replace("{setting}: {paper:g} %", "Together {all}")
    values = {"sum": lambda setting, times: lambda evaluation: times * evaluation.ours(cut(setting))}
    claim = read(file(tmp_path, text), METRICS, values).claims[0]
    assert claim.text == "Together {all}"
    assert claim.check(Effort("full", 1), Evaluation((Row(cut("10%"), None, 1.5),))).value == 3.0


def test_cells_are_planned_once_per_seed_and_found_again() -> None:
    fixed = Cell("dumbbell-cubic", ("a=1",), "fixed", most_seeds=1)
    random = Cell("dumbbell-cubic", (), "random", keep_flows=True).varied("faster", "b=2")
    effort = Effort("full", 3)
    planned = plan([fixed, random, fixed], effort)
    assert [(one.settings, one.seed, one.keep_flows) for one in planned] == [
        (("a=1",), 1, False),
        (("b=2",), 1, True),
        (("b=2",), 2, False),
        (("b=2",), 3, False),
    ]
    empty = pl.DataFrame()
    outcomes = {one: Outcome(empty, empty, empty, empty, empty, empty, digest=str(one.seed)) for one in planned}
    runs = Runs(effort, outcomes)
    assert [outcome.digest for outcome in runs.of(random)] == ["1", "2", "3"]
    assert runs.values(lambda one, other: float(one.digest + other.digest), random, random) == [11, 22, 33]
    assert len(runs.of(fixed)) == 1


def test_a_ratio_that_the_paper_orders_is_stated_and_claimed_to_be_below_100_percent(tmp_path: Path) -> None:
    (tmp_path / "rtcp").mkdir()
    path = tmp_path / "rtcp" / "order.toml"
    path.write_text(
        """
kind = "clients"
title = "Order"
source = "Fig. 4"
method = "Two schemes."
full = { seeds = 2, stop_s = 1 }
schemes = ["Cubic", "RTCP"]
statistics = "goodput"
varied = "load 0.1"
settings = { name = "load 0.1", sizes = "web search", load = 0.1, alpha = 500 }

[[ratios]]
order = "Fig. 4"
rows = [["Fig. 4", "goodput: RTCP's, of Cubic's", "goodput", ["load 0.1"], "RTCP", "Cubic"]]

[[ratios]]
rows = [["Fig. 4", "goodput: Cubic's, of RTCP's", "goodput", ["load 0.1"], "Cubic", "RTCP"]]

[[reason]]
text = "because"
rows = { setting = "Fig. 4", metric = "goodput: RTCP's, of Cubic's" }
""",
        encoding="utf-8",
    )
    experiment = experiments.read(path)
    [claim] = experiment.claims
    key = Key("Fig. 4", Metric("goodput: RTCP's, of Cubic's", "%"))
    assert (claim.text, claim.full, claim.quick) == (f"Fig. 4, {key.metric.name}, in percent", (-math.inf, 99.99), None)
    assert claim.reason == "because"
    assert experiment.reasons == {key: "because"}
    assert claim.value(Evaluation((Row(key, None, 80.0),))) == 80.0
