"""`pogp learn`: what a table that cannot be learned is told."""

import pytest


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("a,y\n1,2\n", [], "--target has to say which column to learn; "),
        ("a,y\n1,2\n", ["--target", "z"], "has no column 'z'"),
        ("a,a,y\n1,2,3\n", ["--target", "y"], "are both called 'a'"),
        ("a,y\n1,2\n", ["--target", "y", "--columns", "a,q"], "has no column 'q'"),
        ("a,y\n1,2\n", ["--target", "y", "--columns", "y"], "is the target"),
        ("a,y\n", ["--target", "y"], "there are no rows in"),
        ("a,y\n1,\n", ["--target", "y"], "there are no numbers in the column 'y'"),
        ("a;y\n1,5;2\n2;3\n3,5;1\n", ["--target", "y"], "has numbers with a comma, '1,5'; exp"),
        ('a,y\n"1,181,711",2\n', ["--target", "y"], "has numbers with a comma, '1,181,711'; exp"),
        ("a;y\n1.234,5;2\n", ["--target", "y"], "decimal=',' and commas between thousands with"),
        (
            "a,y\n05.02.2024,2\n",
            ["--target", "y"],
            "dates such as '05.02.2024'; write dates as",
        ),
        (
            "a,y\n02/05/2024 1:00 PM,2\n",
            ["--target", "y", "--time", "a"],
            "got '02/05/2024 1:00 PM': write dates as 2024-02-05",
        ),
        (
            "a,y\n" + "".join(f"{i}.5 m/s,{i}\n" for i in range(120)),
            ["--target", "y"],
            "these are numbers with a unit: remove the unit",
        ),
        ("a,y\n1,2,3\n1\n", ["--target", "y"], "no row can be used; "),
        ("a,y\n1,2\n", ["--target", "y", "--time", "b"], "--time 'b' is not among the inputs a"),
        ("a;y\n1;0,5\n", ["--target", "y"], "table.csv has numbers with a comma, '0,5'; exp"),
        ('a,y\n1,999\n2,"1,200"\n3,NA\n', ["--target", "y"], "with a comma, '1,200'; exp"),
        ("0.1,0.2\n1,2\n", ["--target", "y"], "say --no-header"),
        ("a,y\n1,2\n", ["--target", "y", "--option", "size=3"], "no option 'size'"),
        ("a,y\n1,2\n", ["--target", "y", "--method", "dense"], "no option 'max_size'"),
        ("a,y\n1,2\n", ["--target", "y", "--method", "mcintire"], "needs the option 'threshold'"),
    ],
)
def test_errors_say_why_a_table_cannot_be_learned(run, tmp_path, text, options, complaint):
    path = tmp_path / "table.csv"
    path.write_text(text)
    code, _, err = run(path, *options, "--quiet")
    assert code == 2
    assert complaint in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "m.pogp").exists()
